"""Stands between a worker and one server, so that no server outlives its worker.

    python guardian.py GRACE_S COMMAND...

Standard input is a pipe whose other end only the worker holds: when the worker closes it, or dies
in whatever way, the pipe ends and the server is ended with all its descendants (SIGTERM to its
group, SIGKILL after GRACE_S seconds). When the server ends by itself, its descendants are ended
too and the guardian exits with the server's code (128 + signal). Linux only; standard library
only, so that it starts in any environment.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


def _die_with_guardian() -> None:
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _signal_group(leader: int, number: int) -> None:
    try:
        os.killpg(leader, number)
    except (ProcessLookupError, PermissionError):
        return


def _children() -> list[int]:
    """Pids of our children; as a subreaper we also inherit every orphaned descendant."""
    text = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
    return [int(pid) for pid in text.split()]


def _end_descendants() -> None:
    """Kill until nothing is left: the children of what was killed become ours and follow."""
    while children := _children():
        for pid in children:
            os.kill(pid, signal.SIGKILL)  # ours until waited for, so the pid cannot be another's
        for pid in children:
            os.waitpid(pid, 0)


def _wait(server_fd: int, stdin_fd: int | None, timeout_s: float | None) -> bool:
    """Wait for the server's end, the worker's end or the timeout; True if the server ended."""
    readable = [server_fd] if stdin_fd is None else [server_fd, stdin_fd]
    while True:
        ready, _, _ = select.select(readable, [], [], timeout_s)
        if server_fd in ready:
            return True
        if not ready or stdin_fd is None or os.read(stdin_fd, 1024) == b"":
            return False


def main(argv: list[str]) -> int:
    """Run the command until it ends or standard input does."""
    grace_s, command = float(argv[0]), argv[1:]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
            preexec_fn=_die_with_guardian,
        )
    except OSError as error:
        print(f"cannot be started: {command[0]}: {error.strerror}", file=sys.stderr)
        return 127
    server_fd = os.pidfd_open(server.pid)
    ended = False
    try:
        ended = _wait(server_fd, sys.stdin.fileno(), None)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        _signal_group(server.pid, signal.SIGTERM)
        if ended or _wait(server_fd, None, grace_s):
            code = server.wait()
        else:
            _signal_group(server.pid, signal.SIGKILL)
            code = server.wait()
        _end_descendants()
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
