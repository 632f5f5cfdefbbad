"""When to answer: the speak head's probability, and what the settings make of it."""

from __future__ import annotations

from dataclasses import dataclass

from hfd.models.roma.settings import Settings


@dataclass
class Trigger:
    """Decides once per second, from the past alone.

    Attributes:
        settings: threshold, refractory time and the two rules.
        pending: whether the last answer was cut at its token limit and may go on.
        quiet_until_s: media second before which the head cannot start an answer.
    """

    settings: Settings
    pending: bool = False
    quiet_until_s: float = 0.0

    def decide(self, probability: float, now_s: float, speaking_until_s: float) -> str:
        """What to do after a unit that ends at media second `now_s`.

        Args:
            probability: of the speak head.
            now_s: end of the unit.
            speaking_until_s: media second until which own speech plays at least.

        Returns:
            ``answer`` or ``continue`` (speak), ``listen``, ``drop`` (listen, and give up the rest
            of an answer), ``refractory`` or ``hold`` (the head fired and is not followed).
        """
        fired = probability > self.settings.threshold
        if self.pending:
            goes_on = self.settings.continuation == "always" or fired
            return "continue" if goes_on else "drop"
        if not fired:
            return "listen"
        if now_s < self.quiet_until_s:
            return "refractory"
        if self.settings.while_speaking == "hold" and now_s < speaking_until_s:
            return "hold"
        return "answer"

    def text_ended(self, began_s: float, goes_on: bool) -> None:
        """A piece of text, begun at media second `began_s`, is over; `goes_on` if it was cut."""
        self.pending = goes_on
        if not goes_on:
            self.quiet_until_s = began_s + self.settings.refractory_s

    def drop(self, now_s: float) -> None:
        """The rest of a cut answer is given up."""
        self.text_ended(now_s, goes_on=False)
