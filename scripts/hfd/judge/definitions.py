"""What counts as a take-over, as an early answer and as speech; and what else it might have been.

The choices are conventions, not facts. The sensitivity table (hfd.judge.sensitivity) shows how far
the numbers hang on each of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Definition:
    """One choice of every convention that the rates rest on.

    Attributes:
        pause_s: a hole of up to this many seconds in the model's speech begins no new turn
            (Full-Duplex-Bench 1.5 joins as much).
        turn_s: a turn of at least this many seconds takes the floor.
        turn_words, turn_han: so does one of more than this many words, or at least this many Han
            characters; None: words do not count, only seconds.
        margin_s: an answer that begins this much before the question's end is none too early
            (people start a median of 151 ms before the other ends).
        speech_chance: the detector's output from which on 32 ms are speech.
    """

    pause_s: float = 0.5
    turn_s: float = 1.0
    turn_words: int | None = 3
    turn_han: int | None = 6
    margin_s: float = 0.25
    speech_chance: float = 0.5

    def __str__(self) -> str:
        by_words = (
            "whatever its words"
            if self.turn_words is None
            else f"> {self.turn_words} words or >= {self.turn_han} Han characters"
        )
        return (
            f"take-over: >= {self.turn_s:g} s with holes up to {self.pause_s:g} s, {by_words}; "
            f"margin {self.margin_s:g} s; speech from {self.speech_chance:g}"
        )


STATED = Definition()
"""What every table rests on that does not say otherwise."""
ALTERNATIVES: Mapping[str, Definition] = {
    "turn 0.5 s": Definition(turn_s=0.5),
    "turn 1.5 s": Definition(turn_s=1.5),
    "turn 2 s": Definition(turn_s=2.0),
    "turn by time alone": Definition(turn_words=None, turn_han=None),
    "margin 0 s": Definition(margin_s=0.0),
    "margin 0.5 s": Definition(margin_s=0.5),
    "speech from 0.3": Definition(speech_chance=0.3),
    "speech from 0.7": Definition(speech_chance=0.7),
    "holes 0.3 s": Definition(pause_s=0.3),
    "holes 1 s": Definition(pause_s=1.0),
}
"""One convention changed at a time."""
