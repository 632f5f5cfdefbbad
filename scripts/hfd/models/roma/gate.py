"""CUDA graphs are captured while nothing else of the process uses the device.

A capture forbids other threads much of what they do (waiting for a stream, allocating), and what
they do forbids the capture. Sessions that share a device therefore run inside `Gate.running`, and
whoever captures waits in `Gate.alone` until none runs.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Gate:
    """Many may run at the same time, or one alone; who wants to be alone goes first."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._running = 0
        self._waiting = 0
        self._alone = False
        self._mine = threading.local()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Run beside others; not while somebody is alone or waits to be."""
        with self._changed:
            self._changed.wait_for(lambda: not self._alone and not self._waiting)
            self._running += 1
        self._mine.runs = True
        try:
            yield
        finally:
            self._mine.runs = False
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Run while nobody else does; may also be asked for inside `running`."""
        mine = int(getattr(self._mine, "runs", False))
        with self._changed:
            self._waiting += 1
            self._running -= mine
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._alone and not self._running)
            self._waiting -= 1
            self._alone = True
        try:
            yield
        finally:
            with self._changed:
                self._alone = False
                self._running += mine
                self._changed.notify_all()


GATE = Gate()
"""Of the process: a capture concerns every session on its devices."""
