"""Leases: at most one worker computes a sample, whichever run, shard or host it belongs to.

A lease is a file that is linked into place whole (atomic, also on NFS). Its owner touches it while
it lives. It is free again when its owner is known to be dead (same machine), or when it has not
been touched for `STALE_S` seconds *of the observer's own monotonic clock*: clocks of different
hosts, or one that was set back, are never compared.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
import uuid
from contextlib import suppress
from pathlib import Path
from typing import Any

from hfd.files import canonical_json

BEAT_S = 5.0
STALE_S = 60.0


def this_process() -> dict[str, Any]:
    """Who leases: enough to tell from any machine whether a local process still lives."""
    return {
        "host": socket.gethostname(),
        "machine": _machine(),
        "pid": os.getpid(),
        "started": _start_ticks(os.getpid()),
        "job": os.environ.get("SLURM_JOB_ID"),
    }


def is_dead(owner: dict[str, Any]) -> bool:
    """Whether the owner ran on this machine and is no more; False if that cannot be known."""
    if owner.get("machine") != _machine():
        return False
    return _start_ticks(owner["pid"]) != owner["started"]


def _machine() -> str:
    """The machine's boot and the process namespace: where a process id has one meaning."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot} {Path('/proc/self/ns/pid').readlink()}"


def _start_ticks(pid: int) -> str | None:
    """When a process started, in clock ticks since boot; None if there is no such process."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else fields[19]


class Leases:
    """The leases of one worker: takes, keeps alive and frees them.

    Use as a context manager; its thread touches what is held every `BEAT_S` seconds.
    """

    def __init__(self, shard: str, beat_s: float = BEAT_S, stale_s: float = STALE_S) -> None:
        self._owner = this_process() | {"shard": shard, "token": uuid.uuid4().hex}
        self._beat_s, self._stale_s = beat_s, stale_s
        self._held: set[Path] = set()
        self._seen: dict[Path, tuple[int, float]] = {}
        self._leave = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="leases", daemon=True)

    def __enter__(self) -> Leases:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._leave.set()
        self._thread.join()
        for path in list(self._held):
            self.free(path)

    def take(self, path: Path) -> dict[str, Any] | None:
        """Try to take the lease `path` without waiting.

        Returns:
            None if a living worker holds it; else the record of the dead owner it was taken
            from, or an empty record if it was free.
        """
        path.parent.mkdir(parents=True, exist_ok=True)
        previous: dict[str, Any] = {}
        if not self._link(path):
            owner = self._dead_owner(path)
            if owner is None:
                return None
            self._remove(path, owner)
            previous = owner
            if not self._link(path):
                return None  # another worker was faster
        self._held.add(path)
        return previous

    def free(self, path: Path) -> None:
        """Give a lease back."""
        self._held.discard(path)
        if _read(path).get("token") == self._owner["token"]:
            path.unlink(missing_ok=True)

    def _link(self, path: Path) -> bool:
        part = path.with_name(f".{self._owner['token']}")
        part.write_text(canonical_json(self._owner), encoding="utf-8")
        try:
            os.link(part, path)
            return True
        except FileExistsError:
            return False
        finally:
            part.unlink()

    def _dead_owner(self, path: Path) -> dict[str, Any] | None:
        """The owner's record if it is dead, {} if the lease has just gone, None if it may live."""
        try:
            beat = path.stat().st_mtime_ns
        except FileNotFoundError:
            return {}
        owner = _read(path)
        if owner.get("machine") == _machine():
            return owner if is_dead(owner) else None
        now = time.monotonic()
        seen, since = self._seen.get(path, (None, now))
        if beat != seen:
            self._seen[path] = (beat, now)
            return None
        return owner if now - since > self._stale_s else None

    def _remove(self, path: Path, owner: dict[str, Any]) -> None:
        """Take a dead owner's lease away; a lease that was renewed meanwhile is put back."""
        aside = path.with_name(f".{self._owner['token']}.old")
        with suppress(FileNotFoundError):
            path.rename(aside)
            if _read(aside).get("token") != owner.get("token"):
                with suppress(FileExistsError):
                    os.link(aside, path)
            aside.unlink()

    def _beat(self) -> None:
        while not self._leave.wait(self._beat_s):
            for path in list(self._held):
                with suppress(OSError):
                    os.utime(path)


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
