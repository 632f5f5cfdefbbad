"""Names that were probably meant to be others: targets, tasks, resources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from typing import Any

from hfd.data.manifest import HESITATION, Sample
from hfd.errors import HfdError

_MEANT = {
    "cpu": "cpus",
    "cores": "cpus",
    "threads": "cpus",
    "gpus": "gpu",
    "mem": "mem_mb",
    "memory": "mem_mb",
    "memory_mb": "mem_mb",
    "ram_mb": "mem_mb",
}
_RARE = 20
"""A task with this many times fewer samples than one of nearly the same name is a slip."""


def check_resources(model: str, resources: Mapping[str, Any]) -> None:
    """Refuse the wrong names of the three resources that the workflow itself understands.

    Raises:
        HfdError: there is one; a scheduler would never be asked for it.
    """
    for name in resources:
        if name in _MEANT:
            raise HfdError(
                "is no resource, nothing would be asked for",
                file="config/models.yaml",
                field=f"models.{model}.resources.{name}",
                remedy=f"Write {_MEANT[name]}",
            )


def unknown_target(target: str, targets: Iterable[str]) -> str:
    """What to tell a user who named a target that does not exist."""
    known = sorted(targets)
    near = get_close_matches(target, known, n=3, cutoff=0.6)
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    return f"there is no target {target!r}.{meant} Targets: {', '.join(known)}"


def doubtful_tasks(samples: Sequence[Sample]) -> list[str]:
    """A line for every task that is nearly, but not quite, one that many samples have."""
    counts = Counter(sample.task for sample in samples)
    found = []
    for task, count in counts.items():
        known = [HESITATION, *(name for name, n in counts.items() if n >= _RARE * count)]
        near = get_close_matches(task, [name for name in known if name != task], cutoff=0.85)
        if near and task != HESITATION:
            first = next(sample for sample in samples if sample.task == task)
            found.append(
                f"line {first.line}: {count} samples have the task {task!r}, which is treated as"
                f" another one than {near[0]!r}"
            )
    return found
