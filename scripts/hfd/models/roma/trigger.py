"""When to answer: the speak head's probability, and what the settings make of it.

What training shows (upstream data/mm_plugin.py and data/processor/supervised.py): the head's label
is 1 in every second that has text, the continuing seconds of a long answer included; and when
another answer falls due, what was left of the old one is thrown away. So a head that stays high is
the answer in hand going on, and a head that has been low and is high again asks for a new one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from hfd.models.roma.settings import Settings

Decision = Literal[
    "listen", "answer", "interrupt", "continue", "drop", "hold", "sustained", "refractory"
]


@dataclass
class Trigger:
    """Decides once per second, from the past alone.

    Attributes:
        settings: threshold, refractory time and the rules.
        owed: whether the last piece of text was cut at its limit, so that the answer may go on.
        fallen: whether the head has been low since the answer in hand began.
        held: whether a firing waits for the speech to end.
        quiet_until_s: media second before which the head cannot start an answer.
    """

    settings: Settings
    owed: bool = False
    fallen: bool = True
    held: bool = False
    quiet_until_s: float = 0.0

    def decide(self, probability: float, now_s: float, speaking_until_s: float) -> Decision:
        """What to do after a unit that ends at media second `now_s`.

        Args:
            probability: of the speak head.
            now_s: end of the unit.
            speaking_until_s: media second until which own speech plays at least.

        Returns:
            ``answer``: begin an answer. ``interrupt``: drop what is left of the answer in hand,
            text and sound, then begin one. ``continue``: write on. ``drop``: give up the text that
            is owed. ``listen``: nothing. And, where the head fired and is not followed now,
            ``hold`` (when the speech has ended), ``sustained`` (it has not been low since the
            answer in hand began) or ``refractory``.
        """
        self.fallen |= probability <= self._low
        fired = probability > self.settings.threshold
        speaking = self.owed or now_s < speaking_until_s
        if fired and speaking and self.fallen and now_s >= self.quiet_until_s:
            if self.settings.while_speaking == "interrupt":
                return self._begin("interrupt")
            if self.settings.while_speaking == "hold":
                self.held = True
        if self.owed:
            goes_on = self.settings.continuation == "always" or fired
            return "continue" if goes_on else "drop"
        if self.held:
            return "hold" if speaking else self._begin("answer")
        if not fired:
            return "listen"
        if now_s < self.quiet_until_s:
            return "refractory"
        if speaking and not self.fallen:
            return "sustained"
        return self._begin("answer")

    def text_ended(self, began_s: float, owed: bool) -> None:
        """A piece of text, begun at media second `began_s`, is over; `owed` if it may go on."""
        self.owed = owed
        if not owed:
            self.quiet_until_s = began_s + self.settings.refractory_s

    @property
    def _low(self) -> float:
        low = self.settings.rearm_below
        return self.settings.threshold if low is None else low

    def _begin(self, how: Decision) -> Decision:
        self.fallen = self.held = self.owed = False
        return how
