"""A17: is each unit computed on top of what came before, or everything anew?"""

from __future__ import annotations

from hfd.judge.measurement_card import growth_estimate
from hfd.judge.rules.rule import FEWEST, Rule, SetCase
from hfd.judge.verdict import Verdict, failed, passed, unknown

REBUILT = 0.6
INCREMENTAL = 0.4
"""Slope of log compute over log past. Attention over a cache adds a little; prefilling all that
came before is proportional to it (1)."""


def of_model(case: SetCase, samples: Verdict) -> Verdict:
    """Fit of listening units' compute over the media that came before them, over all samples."""
    clocks = {record.facts["clock"] for record in case.measured}
    if clocks == {"arrival"}:
        return unknown("a server's compute per unit cannot be seen from outside")
    found = growth_estimate(case.measured)
    if found is None:
        return unknown("too few listening units, or too short files, to see how the cost grows")
    text = f"cost of a listening unit grows with the power {found.value:.2f} of the past"
    if found.low is None or found.high is None or found.n < FEWEST:
        return unknown(f"{text} in {found.n} samples: too few to say", growth=found.value)
    text += f" (95 % interval {found.low:.2f} to {found.high:.2f}, {found.n} samples)"
    if found.low > REBUILT:
        return failed(f"{text}: all that came before is computed anew", growth=found.value)
    if found.high < INCREMENTAL:
        return passed(text, growth=found.value)
    return unknown(text, growth=found.value)


RULE = Rule(
    "A17",
    "Incremental inference",
    "Is each unit computed on top of what came before, not everything anew?",
    "the compute of listening units does not grow in proportion to the media before them (virtual "
    "clock; slope of log compute over log past: its 95 % interval above "
    f"{REBUILT} fails, below {INCREMENTAL} passes, over at least {FEWEST} samples)",
    of_model=of_model,
)
