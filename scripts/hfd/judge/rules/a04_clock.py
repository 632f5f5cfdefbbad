"""A4: is the trace whole, unchanged and on one clock?"""

from __future__ import annotations

from hfd.judge.rules.rule import Rule, SampleCase, by_findings
from hfd.judge.verdict import Verdict


def of_sample(case: SampleCase) -> Verdict:
    return by_findings(case.folder, "A4", "chain, numbering and clock hold")


RULE = Rule(
    "A4",
    "Order and clock",
    "Is the trace whole, unchanged and on one clock?",
    "hash chain, numbering, canonical lines and end are whole; time never runs backwards, agrees "
    "with the machine's monotonic clock (arrival) or with the compute that passed (virtual)",
    of_sample,
)
