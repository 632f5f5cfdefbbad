"""The sessions of one loaded model: each takes one sample at a time, on a thread of its own.

With one session nothing runs beside anything, and the sample runs where it is started.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from hfd.duplex.events import Event
from hfd.duplex.model import Capabilities, DuplexModel, Emit, Identity
from hfd.duplex.units import SampleInfo, Unit

Task = TypeVar("Task")
Outcome = TypeVar("Outcome")
_STOPPING = (signal.SIGTERM, signal.SIGINT)


class Stopped(BaseException):
    """SIGTERM or Ctrl-C: what is in flight is dropped, everything finished stays."""


@contextmanager
def stop_on_signal() -> Iterator[None]:
    """Turn SIGTERM (Snakemake, Slurm's time limit, scancel) and Ctrl-C into an orderly end."""

    def stop(*_: object) -> None:
        for number in _STOPPING:  # the end itself must not be interrupted
            signal.signal(number, signal.SIG_IGN)
        raise Stopped

    before = {number: signal.signal(number, stop) for number in _STOPPING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class Sessions(Generic[Task, Outcome]):
    """Runs tasks on free sessions, and gives back their outcomes as they end.

    Args:
        models: the loaded model and what it shared; their number is the most that run at once.
    """

    def __init__(self, models: Sequence[DuplexModel]) -> None:
        self._stop = threading.Event()
        self._models = list(models)
        self._threads = [
            ThreadPoolExecutor(1, f"session-{n}") for n in range(len(models)) if len(models) > 1
        ]
        self._idle = list(range(len(models)))
        self._running: dict[Future[Outcome], tuple[int, Task]] = {}

    @property
    def count(self) -> int:
        return len(self._models)

    @property
    def in_flight(self) -> int:
        """Tasks whose outcome was not taken yet."""
        return len(self._running)

    def start(self, task: Task, run: Callable[[DuplexModel], Outcome]) -> None:
        """Give a task to a free session; there must be one.

        With one session it is over when this returns, and what `run` raises is raised here.
        """
        number = self._idle.pop()
        if self._threads:
            model = _Stoppable(self._models[number], self._stop)
            future = self._threads[number].submit(run, model)
        else:
            future = Future()
            try:
                future.set_result(run(self._models[number]))
            except BaseException:
                self._idle.append(number)
                raise
        self._running[future] = number, task

    def next_ended(self) -> tuple[Task, Future[Outcome]]:
        """Wait for a task to end, and give it with its outcome or error."""
        done, _ = wait(self._running, return_when=FIRST_COMPLETED)
        future = next(future for future in self._running if future in done)
        number, task = self._running.pop(future)
        self._idle.append(number)
        return task, future

    def stop(self) -> None:
        """Make whatever still runs end with `Stopped` at its next event or unit; wait for it."""
        self._stop.set()
        for thread in self._threads:
            thread.shutdown(wait=True)


class _Stoppable(DuplexModel):
    """A session that can be stopped from another thread, as a signal stops the main one."""

    def __init__(self, model: DuplexModel, stop: threading.Event) -> None:
        self._model, self._stop = model, stop

    @property
    def capabilities(self) -> Capabilities:
        return self._model.capabilities

    def load(self) -> Identity:
        raise RuntimeError("a session is loaded already")

    def open(self, sample: SampleInfo, emit: Emit) -> None:
        def watched(event: Event) -> None:
            self._look()
            emit(event)

        self._look()
        self._model.open(sample, watched)

    def push(self, unit: Unit) -> None:
        self._look()
        self._model.push(unit)

    def finish(self) -> Mapping[str, Any]:
        self._look()
        return self._model.finish()

    def close(self) -> None:
        self._model.close()

    def _look(self) -> None:
        if self._stop.is_set():
            raise Stopped
