"""MiniCPM-o as a full-duplex model: reads a second, then decides and speaks for one."""

from __future__ import annotations

import importlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from PIL import Image

from hfd.duplex.events import Audio, Control, ControlKind, Metric, Text
from hfd.duplex.frames import FrameRule
from hfd.duplex.model import Capabilities, DuplexModel, Emit, Identity, SampleInfo
from hfd.duplex.units import Unit
from hfd.errors import HfdError
from hfd.media_time import SAMPLE_RATE
from hfd.models.minicpmo.checkpoint import find_snapshot, snapshot_problems
from hfd.models.minicpmo.frames import arrange
from hfd.models.minicpmo.session import Parts, Session
from hfd.models.minicpmo.settings import Settings, parse_settings
from hfd.models.minicpmo.text import Piece, TurnText
from hfd.models.minicpmo.upstream import seconds_of

OUTPUT_RATE = 24_000
HOP = 960
"""Samples of one speech code (25 a second)."""
POSITIONS = 40_960
"""Of MiniCPM-o 4.5's language model."""
LISTENING_TOKENS = {"first": 79, "stacked": 145}
"""Tokens of a second without speech, frames not sliced."""
IMAGE_TOKENS = 66
SOUND_TOKENS = 13
PROMPT_TOKENS = 40
"""About what the prompt and a short voice take."""
USUAL_TOKENS = 8192
"""From here on the model is known to lose its thread (docs/minicpmo.md, Context)."""
TAGS = {"venus": ("delegate", "backend")}
"""Control tags in the text of each variant: messages to others, never spoken text."""
FRAME_RULES = {
    "first": FrameRule.per_second(1),
    "stacked": FrameRule(layout="stacked"),
}


class MiniCpmO(DuplexModel):
    """`DuplexModel` for MiniCPM-o 4.5 and Realtime-Venus-Omni, through their own code."""

    loader = "hfd.models.minicpmo.loader"
    """The module that loads it; imported late, because it needs torch."""
    codes_cap: int | None = 25
    """Upstream's own limit on the speech codes of a second, also of a turn's last one."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings: Settings = parse_settings(settings)

    @property
    def capabilities(self) -> Capabilities:
        tokens = LISTENING_TOKENS[self.settings.frames]
        return Capabilities(
            unit_samples=SAMPLE_RATE,
            output_rate=OUTPUT_RATE,
            clock="virtual",
            voice_origin="native_talker",
            frame_rule=FRAME_RULES[self.settings.frames],
            max_media_s=float((POSITIONS - PROMPT_TOKENS) // tokens),
            gpus=1,
            codec_hop_samples=HOP,
        )

    def preflight(self) -> Sequence[str]:
        try:
            snapshot = find_snapshot(self.settings.model_path, self.settings.voice)
        except HfdError as error:
            return (str(error),)
        return [f"{snapshot.folder}: {problem}" for problem in snapshot_problems(snapshot)]

    def load(self) -> Identity:
        began = time.perf_counter()
        self._parts = self.load_parts()
        self._session = self.make_session(self._parts)
        identity = self._parts.identity
        more = {
            "generate": self._session.arguments,
            "load_s": round(time.perf_counter() - began, 3),
        }
        return replace(identity, detail={**identity.detail, **more})

    def load_parts(self) -> Parts:
        """The snapshot of the settings; tests and benchmarks give others."""
        try:
            loader = importlib.import_module(self.loader)
        except ModuleNotFoundError as error:
            raise HfdError(
                f"needs the Python package {error.name!r}, which is not installed",
                file="config/models.yaml",
                field="python",
                remedy="Name an interpreter that has requirements/minicpmo.txt",
            ) from error
        parts: Parts = loader.load_parts(self.settings)
        return parts

    def make_session(self, parts: Parts) -> Session:
        """The calls of this model's code."""
        return Session(parts, self.settings)

    def open(self, sample: SampleInfo, emit: Emit) -> None:
        self._sample = sample
        self._emit = emit
        self._text = TurnText(self._parts.duplex.tokenizer, TAGS.get(self.settings.variant, ()))
        self._speaking: bool | None = None
        self._turns = 0
        self._turn_has_text = False
        self._said = False
        self._withheld = False
        self._usual_until_s: float | None = None
        frames = 5 if self.settings.frames == "stacked" else 1
        self._session.look_ahead(
            arrange([Image.new("RGB", (sample.width, sample.height))] * frames)
        )
        self._context = self._session.begin(sample.seed)
        emit(Metric("prompt", {"context_tokens": self._context}))

    def push(self, unit: Unit) -> None:
        images = arrange([Image.fromarray(frame.rgb) for frame in unit.taken])
        self._refuse_overflow(unit, len(images))
        heard = self._session.heard_positions
        listened = self._session.listen(unit.pcm, images)
        if self._session.heard_positions < heard:
            self._emit(Metric("apm_reset", {"positions_before": heard}))
        was_open = self._session.turn_is_open
        answered = self._session.answer()
        self._context = self._session.context_tokens
        self._say(answered, was_open)
        self._measure(unit, listened, answered)

    def _refuse_overflow(self, unit: Unit, images: int) -> None:
        """Stop before a position that the model does not have; old seconds are never dropped."""
        slices = self.settings.max_slice + 1 if self.settings.max_slice > 1 else 1
        need = SOUND_TOKENS + IMAGE_TOKENS * (images + slices - 1) + self.settings.tokens_per_unit
        if self._context + need > self._parts.positions:
            raise HfdError(
                f"fills the model's {self._parts.positions} positions at {unit.t0:.0f} s"
                f" ({self._context} are read)",
                file=self._sample.sample_id,
                remedy="Nothing is ever cropped: leave it out, or use settings.frames: first",
            )

    def _say(self, answered: Mapping[str, Any], was_open: bool) -> None:
        """Turn one second's answer into events."""
        ids = self._session.new_ids()
        if answered["is_listen"]:
            self._change_state(speaking=False)
            self._lost(ids, answered["n_tokens"], was_open)
            return
        self._change_state(speaking=True)
        self._tell(self._text.add(ids[1:]))  # the first one is the decision
        pcm = answered["audio_waveform"]
        if pcm is not None and len(pcm):
            if not was_open:
                self._emit(Metric("turn_start", {"leading_zeros": leading_zeros(pcm)}))
            self._emit(Audio(pcm))
        self._said = True
        self._withheld = not answered["end_of_turn"]
        if answered["end_of_turn"]:
            if self.codes_cap is not None and answered["n_tts_tokens"] >= self.codes_cap:
                self._emit(Metric("talker_cap_at_turn_end", {"codes": answered["n_tts_tokens"]}))
            self._end_turn({"reason": "ended"})

    def _change_state(self, speaking: bool) -> None:
        if speaking is not self._speaking:
            self._emit(Control(ControlKind.SPEAK if speaking else ControlKind.LISTEN))
            self._speaking = speaking

    def _tell(self, piece: Piece) -> None:
        """Give out text; turns are kept apart by a blank."""
        if piece.spoken:
            apart = self._turn_has_text or not self._turns or piece.spoken[0].isspace()
            self._emit(Text(piece.spoken if apart else f" {piece.spoken}"))
            self._turn_has_text = True
        for tag, text in piece.tagged:
            self._emit(Control(ControlKind.THINK, {"tag": tag, "text": text}))

    def _end_turn(self, detail: Mapping[str, Any]) -> None:
        self._tell(self._text.end())
        self._turns += 1
        self._turn_has_text = False
        self._emit(Control(ControlKind.TURN_END, detail))

    def _lost(self, ids: list[int], count: int, was_open: bool) -> None:
        """Words of a turn that ended in a unit which upstream then took for listening.

        Upstream drops them: they are neither in its text nor in its speech. They are counted here,
        never given out as text.
        """
        if not count:
            return
        self._emit(Metric("lost_text_tokens", {"tokens": count, "ids": ids}))
        if was_open:
            self._end_turn({"reason": "ended", "lost_tokens": count})

    def _measure(
        self, unit: Unit, listened: Mapping[str, Any], answered: Mapping[str, Any]
    ) -> None:
        if self._usual_until_s is None and self._context > USUAL_TOKENS:
            self._usual_until_s = unit.t0
        self._emit(Metric("listen", seconds_of(listened)))
        values = {
            "decision": "listen" if answered["is_listen"] else "speak",
            "context_tokens": self._context,
            "text_tokens": answered["n_tokens"],
            "codes": answered["n_tts_tokens"],
            "frames": [frame.index for frame in unit.taken],
        }
        self._emit(Metric("answer", values | seconds_of(answered)))

    def finish(self) -> Mapping[str, Any]:
        """Give out what the vocoder still withholds. No input is added, no text is made up."""
        is_open = self._session.turn_is_open
        if self._withheld:
            pcm = self._session.flush()
            if pcm is not None and len(pcm):
                self._emit(Audio(pcm))
        self._tell(self._text.end())
        ending: dict[str, Any] = {
            "end_reason": "open_turn" if is_open else "input_done" if self._said else "no_speech",
            "truncated": is_open,
            "context_tokens": self._context,
            "turns": self._turns,
        }
        if is_open:
            ending["reason"] = "input ended in an open turn"
        if self._usual_until_s is not None:
            ending["warning"] = (
                f"the context passed {USUAL_TOKENS} tokens at {self._usual_until_s:.0f} s; answers"
                " after that are known to get worse"
            )
        return ending


def leading_zeros(pcm: np.ndarray) -> int:
    """Samples of exact silence at the start."""
    sounding = np.flatnonzero(pcm)
    return int(sounding[0]) if len(sounding) else len(pcm)
