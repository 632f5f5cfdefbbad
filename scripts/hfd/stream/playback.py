"""What a listener hears: chunks queue up and play at their time or when the earlier ones end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass
class _Chunk:
    start: int
    pcm: np.ndarray

    @property
    def end(self) -> int:
        return self.start + len(self.pcm)


class Playback:
    """The assistant's track on the media axis, in samples at the model's output rate.

    A chunk plays at max(end of the previous one, its event time); nothing is ever moved earlier,
    stretched or shortened. Only a stop or an interruption takes sound away: what has not been
    played by then.
    """

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self.end = 0
        """Sample at which everything queued so far has been played."""
        self.cleared = 0
        """Samples that stops and interruptions dropped."""
        self._chunks: list[_Chunk] = []

    def add(self, pcm: np.ndarray, at: float) -> int:
        """Queue int16 samples that arrived at media second `at`; return where they play."""
        start = max(self.end, round(at * self.rate))
        self._chunks.append(_Chunk(start, pcm))
        self.end = start + len(pcm)
        return start

    def cut(self, at: float) -> tuple[int, int]:
        """Drop what has not been played at media second `at`.

        Returns:
            The sample from which the track is empty again, and how many samples of sound went.
        """
        cut_at = min(self.end, round(at * self.rate))
        cleared = 0
        while self._chunks and self._chunks[-1].end > cut_at:
            chunk = self._chunks.pop()
            kept = max(0, cut_at - chunk.start)
            cleared += len(chunk.pcm) - kept
            if kept:
                self._chunks.append(_Chunk(chunk.start, chunk.pcm[:kept]))
        self.end = cut_at
        self.cleared += cleared
        return cut_at, cleared

    def track(self, at_least: int = 0) -> np.ndarray:
        """The whole track as int16, shape [samples], silent where nothing plays."""
        track = np.zeros(max(self.end, at_least), "<i2")
        for chunk in self._chunks:
            track[chunk.start : chunk.end] = chunk.pcm
        return track

    def segments(self) -> list[tuple[int, int]]:
        """Runs of played chunks without a gap, as (start, end) in samples."""
        runs: list[tuple[int, int]] = []
        for chunk in self._chunks:
            if runs and runs[-1][1] == chunk.start:
                runs[-1] = (runs[-1][0], chunk.end)
            else:
                runs.append((chunk.start, chunk.end))
        return runs

    @property
    def samples(self) -> int:
        """Samples of sound that were played."""
        return sum(len(chunk.pcm) for chunk in self._chunks)
