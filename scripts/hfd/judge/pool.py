"""Many samples in a few processes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

Work = TypeVar("Work")
Done = TypeVar("Done")
_AT_ONCE = 4


def each(task: Callable[[Work], Done], works: Sequence[Work], jobs: int) -> Iterator[Done]:
    """`task` of every work, in order, in `jobs` processes; in this one where one is enough."""
    if jobs <= 1 or len(works) <= _AT_ONCE:
        yield from map(task, works)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(task, works, chunksize=_AT_ONCE)
