"""Snakemake's working-folder lock after a run that was killed.

Snakemake's lock files carry no owner, so after ``kill -9`` they stay and every later run is
refused. Each run of this workflow therefore holds, for as long as its process lives, a kernel lock
(flock) on a small file of its own. A lock is stale when files lie in .snakemake/locks and no such
process lives; then, and only then, they are removed. A run on another host is never called dead:
not every network file system shares flock between hosts.
"""

from __future__ import annotations

import fcntl
import json
import os
import socket
import sys
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

_held: list[TextIO] = []  # open for as long as the process lives


@dataclass(frozen=True)
class OtherRun:
    """A run that lives, or that cannot be seen from here.

    Attributes:
        file: its small file.
        host, pid, since: where and when it started.
    """

    file: Path
    host: str
    pid: int
    since: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


def announce_run(workdir: Path) -> Path:
    """Hold this process's own lock file until it exits; return the file."""
    folder = _folder(workdir)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{socket.gethostname()}-{os.getpid()}.json"
    stream = path.open("a+", encoding="utf-8")
    with suppress(OSError):  # a file system without flock: the run is then never called dead
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    stream.truncate(0)
    since = datetime.now().astimezone().isoformat(timespec="seconds")
    json.dump({"host": socket.gethostname(), "pid": os.getpid(), "since": since}, stream)
    stream.flush()
    _held.append(stream)
    return path


def other_runs(workdir: Path) -> list[OtherRun]:
    """Runs that live here or were started on another host; files of the dead are removed."""
    found = []
    for path in sorted(_folder(workdir).glob("*.json")):
        record = _read(path)
        here = record.get("host") == socket.gethostname()
        if here and record.get("pid") == os.getpid():
            continue
        if here and not is_held(path):
            path.unlink(missing_ok=True)
            continue
        found.append(
            OtherRun(
                path,
                record.get("host", "unknown host"),
                record.get("pid", 0),
                record.get("since", "?"),
            )
        )
    return found


def clear_stale_lock(workdir: Path) -> str | None:
    """Remove Snakemake's lock files if no other run lives.

    Returns:
        What to tell the user, or None if nothing is locked and nobody else is at work.
    """
    others = other_runs(workdir)
    locks = sorted((workdir / ".snakemake" / "locks").glob("*"))
    if others:
        names = "; ".join(map(str, others))
        return (
            f"another run is at work in this folder ({names}). If it computes the same results,"
            " this one will be refused. Should it be dead: scripts/unlock.py"
        )
    if not locks:
        return None
    for path in locks:
        path.unlink(missing_ok=True)
    return "the lock of a run that was killed has been cleared; nothing it finished is repeated"


def tell(message: str | None) -> None:
    """Print a message of this module to stderr."""
    if message:
        print(f"hfd: {message}", file=sys.stderr)


def _folder(workdir: Path) -> Path:
    return workdir / ".snakemake" / "hfd-runs"


def is_held(path: Path) -> bool:
    """Whether a process holds the file, as far as this host can tell."""
    try:
        with path.open("r+", encoding="utf-8") as stream:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return False
    except FileNotFoundError:
        return False
    except OSError:  # held, or a file system that cannot tell
        return True


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
