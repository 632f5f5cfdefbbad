"""A9: does every chunk play when it arrived, or when the queue allows?"""

from __future__ import annotations

from hfd.judge.rules.rule import Rule, SampleCase, by_findings
from hfd.judge.verdict import Verdict


def of_sample(case: SampleCase) -> Verdict:
    return by_findings(case.folder, "A9", "every chunk plays at its arrival or after the queue")


RULE = Rule(
    "A9",
    "Placement",
    "Does every chunk play when it arrived or when the queue allows?",
    "every chunk plays at its arrival or when the queue is free, cuts too",
    of_sample,
)
