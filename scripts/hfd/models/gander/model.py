"""Gander as a full-duplex model: MiniCPM-o's, which can break itself off."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hfd.duplex.events import Control, ControlKind, Metric
from hfd.duplex.model import Capabilities, Emit, SampleInfo
from hfd.models.gander.session import GanderParts, GanderSession
from hfd.models.gander.settings import Settings, parse_settings
from hfd.models.minicpmo.model import LISTENING_TOKENS, PROMPT_TOKENS, MiniCpmO
from hfd.models.minicpmo.session import Parts, Session

MAX_UNITS = 128
"""Seconds that its training kept; its own window drops older ones."""
MAX_TOKENS = 16_384
"""Longest context of its training."""


class Gander(MiniCpmO):
    """`DuplexModel` for Gander-Omni/Gander, through its public package.

    A second of media may bring two seconds of sound: the model speaks ahead, and an interruption
    drops what was not yet heard.
    """

    settings: Settings
    loader = "hfd.models.gander.loader"
    codes_cap = None  # the last second of a turn goes on until the talker ends it

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = parse_settings(settings)

    @property
    def capabilities(self) -> Capabilities:
        most = (MAX_TOKENS - PROMPT_TOKENS) // LISTENING_TOKENS[self.settings.frames]
        return replace(super().capabilities, max_media_s=float(min(MAX_UNITS, most)))

    def make_session(self, parts: Parts) -> Session:
        assert isinstance(parts, GanderParts)
        return GanderSession(parts, self.settings)

    def open(self, sample: SampleInfo, emit: Emit) -> None:
        self._interruptions = 0
        super().open(sample, emit)

    def _say(self, answered: Mapping[str, Any], was_open: bool) -> None:
        if answered.get("is_tool_call"):
            raise RuntimeError("the model called a tool, though it was given none")
        if not answered.get("is_interrupt"):
            super()._say(answered, was_open)
            return
        self._session.new_ids()
        self._interruptions += 1
        self._emit(Control(ControlKind.INTERRUPT, {"number": self._interruptions}))
        self._withheld = False  # the runner has dropped what its vocoder held back
        if was_open:
            self._end_turn({"reason": "interrupted"})
        self._change_state(speaking=False)

    def finish(self) -> Mapping[str, Any]:
        ending = super().finish()
        self._emit(Metric("interruptions", {"count": self._interruptions}))
        return {**ending, "interruptions": self._interruptions}
