"""The listener's ear: what of the server's sound has been played by now.

Mirrors `hfd.stream.playback`: a piece plays when it came, or when the one before it ends.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

SILENT_PEAK = 33
"""Largest int16 magnitude that counts as silence (-60 dBFS), as in the results."""


@dataclass
class _Piece:
    item: str
    answer: str
    start: float
    samples: int
    rate: int

    @property
    def end(self) -> float:
        return self.start + self.samples / self.rate

    def played(self, now: float) -> int:
        """Samples that have been heard by now."""
        return min(self.samples, max(0, math.floor((now - self.start) * self.rate)))


@dataclass(frozen=True)
class Heard:
    """How much of an item was played before a cut, in milliseconds rounded down."""

    item: str
    answer: str
    heard_ms: int
    audio_ms: int


class Listener:
    """Plays what comes.

    Args:
        rate: samples per second.
        now: the present in seconds.
        continuous: whether the stream contains its own silence, which may be shortened to catch
            up after a stall.

    Attributes:
        absorbed_s: silence that was left out to catch up.
        stalled_s: longest gap in a continuous stream.
    """

    def __init__(self, rate: int, now: Callable[[], float], *, continuous: bool) -> None:
        self.absorbed_s = 0.0
        self.stalled_s = 0.0
        self._rate = rate
        self._now = now
        self._continuous = continuous
        self._end: float | None = None
        self._pieces: list[_Piece] = []
        self._items: dict[str, tuple[int, float]] = {}  # samples in all, and when they end

    @property
    def left_s(self) -> float:
        """Seconds of sound that are still to be played."""
        return max(0.0, (self._end or 0.0) - self._now()) if self._end is not None else 0.0

    def add(self, pcm: np.ndarray, answer: str = "", item: str = "") -> np.ndarray:
        """Queue a piece that came now; return the part of it that plays (int16, [samples])."""
        now = self._now()
        if self._continuous:
            pcm = self._caught_up(pcm, now)
        start = now if self._end is None else max(now, self._end)
        piece = _Piece(item, answer, start, len(pcm), self._rate)
        self._end = piece.end
        self._forget_played(now, answer)
        self._pieces.append(piece)
        if item:
            before, _ = self._items.get(item, (0, 0.0))
            self._items[item] = (before + piece.samples, piece.end)
        return pcm

    def take_played(self, items: Iterable[str]) -> list[tuple[str, int]]:
        """Those of the items that have been played to their end by now, with their milliseconds.

        Each is given once.
        """
        now = self._now()
        ended = [item for item in items if item in self._items and self._items[item][1] <= now]
        return [(item, self._items.pop(item)[0] * 1000 // self._rate) for item in ended]

    def cut(self) -> list[Heard]:
        """Drop what has not been played; tell of each item that lost sound how much was heard."""
        now = self._now()
        lost = {piece.item for piece in self._pieces if piece.end > now}
        report = [self._heard(item, now) for item in dict.fromkeys(p.item for p in self._pieces)]
        self._pieces = []
        for item in lost:
            self._items.pop(item, None)
        self._end = None if self._end is None else min(self._end, now)
        return [heard for heard in report if heard.item in lost]

    def _heard(self, item: str, now: float) -> Heard:
        pieces = [piece for piece in self._pieces if piece.item == item]
        played = sum(piece.played(now) for piece in pieces) * 1000 // self._rate
        whole = sum(piece.samples for piece in pieces) * 1000 // self._rate
        return Heard(item, pieces[0].answer, played, whole)

    def _forget_played(self, now: float, answer: str) -> None:
        """Pieces of earlier answers that have been played in whole can never be cut."""
        self._pieces = [p for p in self._pieces if p.answer == answer != "" or p.end > now]

    def _caught_up(self, pcm: np.ndarray, now: float) -> np.ndarray:
        """A silent piece, shortened by as much as the queue is behind; sound is never dropped."""
        if self._end is None:
            return pcm
        self.stalled_s = max(self.stalled_s, now - self._end)
        behind = min(len(pcm), math.floor((self._end - now) * self._rate))
        if behind <= 0 or np.abs(pcm.astype(np.int32)).max(initial=0) > SILENT_PEAK:
            return pcm
        self.absorbed_s += behind / self._rate
        return pcm[behind:]


class MediaClock:
    """The virtual clock of `hfd.stream.clock`, as far as the listener needs it."""

    def __init__(self) -> None:
        self._v = 0.0
        self._mark: float | None = None

    def begin(self, due: float) -> None:
        """A unit that exists at media second `due` is being taken in."""
        self._v = max(self._v, due)
        self._mark = time.perf_counter()

    def end(self) -> None:
        """It has been taken in."""
        self._v, self._mark = self.now(), None

    def now(self) -> float:
        """Media time."""
        return self._v + (time.perf_counter() - self._mark if self._mark else 0.0)
