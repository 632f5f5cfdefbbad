"""A model that really listens and looks, with a recogniser, and answers a canary's question.

Settings: ``keep_s`` (seconds of context; default all), ``looks`` (whether it takes video frames
in; default true). What it answers comes from what it kept, and from nothing else.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from hfd.data.canary import SHOWN
from hfd.duplex.events import Audio, Text
from hfd.duplex.model import Capabilities, DuplexModel, Emit, Identity, SampleInfo
from hfd.duplex.units import Unit
from hfd.judge.recogniser import bundled_model, recogniser
from hfd.models.settings import make_settings

RATE = 16_000


@dataclass(frozen=True)
class Settings:
    keep_s: float = 3600.0
    looks: bool = True


class Listener(DuplexModel):
    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = make_settings(Settings, settings)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(RATE, RATE, "virtual", "native_talker")

    def load(self) -> Identity:
        self.listen = recogniser(bundled_model(), "en")
        return Identity("listener", None)

    def open(self, sample: SampleInfo, emit: Emit) -> None:
        self.emit = emit
        self.sound: list[np.ndarray] = []
        self.seen: list[np.ndarray] = []

    def push(self, unit: Unit) -> None:
        keep = int(self.settings.keep_s)
        self.sound = [*self.sound, unit.pcm][-keep:]
        frames = [frame.rgb for frame in unit.taken] if self.settings.looks else []
        self.seen = [*self.seen, *frames][-5 * keep :]

    def finish(self) -> dict[str, Any]:
        answer = self._colour() if "picture" in (heard := self._heard()) else self._word(heard)
        self.emit(Text(answer or "I do not know."))
        self.emit(Audio(np.full(RATE // 2, 2000, np.int16)))
        return {"end_reason": "input_done", "truncated": False}

    def _heard(self) -> str:
        with tempfile.TemporaryDirectory() as folder:
            wav = Path(folder) / "kept.wav"
            soundfile.write(wav, np.concatenate(self.sound), RATE)
            return str(self.listen(wav)["text"])

    def _word(self, heard: str) -> str:
        found = re.search(r"word is,? (?:the |a )?(\w+)", heard, re.IGNORECASE)
        return f"It was {found[1]}." if found else ""

    def _colour(self) -> str:
        """The colour of a frame that has but one."""
        plain = [f for f in self.seen if f.reshape(-1, 3).std(axis=0).max() < 3]
        if not plain:
            return ""
        mean = plain[0].reshape(-1, 3).mean(axis=0)
        near = min(SHOWN, key=lambda name: float(np.abs(mean - SHOWN[name][0]).sum()))
        return f"The picture was {near}."


MODEL = Listener
