"""How busy the machine was while a sample ran: latencies of a run that had to wait are not its own.

Linux says it all in /proc; elsewhere nothing is known, and nothing is claimed.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

WAITED_SHARE = 0.1
"""Waiting for a core, as a part of the processor time used, from which a run was disturbed."""
OTHERS_SHARE = 0.1
"""Part of all cores that other programs must have used for it to be their doing."""


@dataclass(frozen=True)
class _Counters:
    """Seconds since boot: all cores' work, and the processor time and waiting of some processes."""

    wall: float
    machine_s: float
    own_s: float
    waited_s: float


class MachineWatch:
    """Counts from its making to `facts`; the worker and the servers under it are one program."""

    def __init__(self, proc: Path = Path("/proc")) -> None:
        self._proc = proc
        self._load = _load()
        self._before = _counters(proc)

    def facts(self) -> dict[str, Any]:
        """What provenance.json keeps as ``machine``; ``{}`` where the system does not say.

        Keys: ``cpus``; ``load_1m`` at both ends; ``others_cpu``, the part of all cores that other
        programs used; ``waited_s``, the seconds for which threads that could have run had no
        core; ``busy``, whether other programs made this run wait.
        """
        after = _counters(self._proc)
        if self._before is None or after is None:
            return {}
        cpus = os.cpu_count() or 1
        wall = max(after.wall - self._before.wall, 1e-3)
        own = max(after.own_s - self._before.own_s, 0.0)
        waited = max(after.waited_s - self._before.waited_s, 0.0)
        used = after.machine_s - self._before.machine_s
        others = min(max(used - own, 0.0) / (wall * cpus), 1.0)
        return {
            "cpus": cpus,
            "load_1m": [self._load, _load()],
            "others_cpu": round(others, 3),
            "waited_s": round(waited, 3),
            "busy": waited >= WAITED_SHARE * max(own, 0.05 * wall) and others >= OTHERS_SHARE,
        }


def cpu_model(proc: Path = Path("/proc")) -> str | None:
    """The processor's name, or None where the system does not say."""
    try:
        lines = (proc / "cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((line.split(":", 1)[1].strip() for line in lines if "model name" in line), None)


def _load() -> float:
    return round(os.getloadavg()[0], 2)


def _counters(proc: Path) -> _Counters | None:
    tick = os.sysconf("SC_CLK_TCK")
    try:
        user, nice, system, _idle, _iowait, *rest = map(
            int, (proc / "stat").read_text().split("\n", 1)[0].split()[1:9]
        )
        family = _family(proc)
        own = sum(used for used, _ in family.values()) / tick
        waited = sum(_waited_ns(proc / str(pid)) for pid in family) / 1e9
    except (OSError, ValueError):
        return None
    return _Counters(time.monotonic(), (user + nice + system + sum(rest)) / tick, own, waited)


def _family(proc: Path) -> dict[int, tuple[int, int]]:
    """Processor time in ticks (with that of ended children) and parent, by process.

    Those of this process and of all below it.
    """
    known: dict[int, tuple[int, int]] = {}
    for folder in proc.iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_text().rpartition(")")[2].split()
            except OSError:  # it has just ended
                continue
            known[int(folder.name)] = (sum(map(int, fields[11:15])), int(fields[1]))
    family = {os.getpid()}
    while more := {pid for pid, (_, above) in known.items() if above in family} - family:
        family |= more
    return {pid: known[pid] for pid in family if pid in known}


def _waited_ns(process: Path) -> int:
    """Nanoseconds for which the process's threads were ready to run and had no core."""
    waited = 0
    for task in (process / "task").glob("*/schedstat"):
        try:
            waited += int(task.read_text().split()[1])
        except (OSError, IndexError, ValueError):
            continue
    return waited
