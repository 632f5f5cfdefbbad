"""A5: is no output earlier than the input it depends on?"""

from __future__ import annotations

from hfd.judge.rules.rule import Rule, SampleCase, by_findings
from hfd.judge.verdict import Verdict


def of_sample(case: SampleCase) -> Verdict:
    return by_findings(case.folder, "A5", "every output follows the input it depends on")


RULE = Rule(
    "A5",
    "Dependency",
    "Is no output earlier than the input it depends on?",
    "no output before the input it depends on, none that names input not yet sent",
    of_sample,
)
