"""What a model may say: a small vocabulary of events, emitted at the moment they exist.

The session stamps each event with its time and with the last input unit the model had consumed;
a model never states a time of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np


class ControlKind(StrEnum):
    """Decisions a model reports beside its words."""

    LISTEN = "listen"
    SPEAK = "speak"
    STOP = "stop"
    """The model stops by itself: what has not been played is dropped."""
    INTERRUPT = "interrupt"
    """The user barged in: what has not been played is dropped."""
    THINK = "think"
    WAIT = "wait"
    TURN_END = "turn_end"


@dataclass(frozen=True)
class Text:
    """A piece of the assistant's text, as it left the model.

    Attributes:
        delta: the new characters, never a repetition of earlier ones.
        input_seq: index of the last unit this piece depends on; None: the last one pushed.
    """

    delta: str
    input_seq: int | None = None


@dataclass(frozen=True)
class Audio:
    """A piece of the assistant's own voice, to be played after all earlier pieces.

    Attributes:
        pcm: shape [samples], mono, at the model's output rate; int16 passes unchanged,
            float32 in [-1, 1] is rounded to int16 (values outside are clipped and counted).
        input_seq: index of the last unit this piece depends on; None: the last one pushed.
    """

    pcm: np.ndarray
    input_seq: int | None = None


@dataclass(frozen=True)
class Control:
    """A decision of the model, for example that it starts to speak.

    Attributes:
        kind: the decision.
        detail: more about it, JSON values by name.
        input_seq: index of the last unit it depends on; None: the last one pushed.
    """

    kind: ControlKind
    detail: Mapping[str, Any] = field(default_factory=dict)
    input_seq: int | None = None


@dataclass(frozen=True)
class Metric:
    """A measured step of the model (speak probability, context length, seconds of compute).

    Attributes:
        name: what was measured, for example ``prefill``.
        values: JSON values by name; keys carry their unit (``compute_s``, ``context_tokens``).
        input_seq: index of the last unit it depends on; None: the last one pushed.
    """

    name: str
    values: Mapping[str, Any]
    input_seq: int | None = None


@dataclass(frozen=True)
class Heard:
    """What a server itself understood of the user's words: its own transcript, no output.

    Attributes:
        text: the words.
        final: whether they will not be corrected any more.
        input_seq: index of the last unit they depend on; None: the last one pushed.
    """

    text: str
    final: bool = True
    input_seq: int | None = None


Event = Text | Audio | Control | Metric | Heard
