"""A2: was the whole file sent, once, with nothing after it?"""

from __future__ import annotations

from hfd.judge.rules.rule import Rule, SampleCase, by_findings
from hfd.judge.verdict import PASS, Verdict, failed
from hfd.media_time import SAMPLE_RATE


def of_sample(case: SampleCase) -> Verdict:
    verdict = by_findings(case.folder, "A2", "every unit once, zero fill only in the last")
    if verdict.status != PASS or case.reference is None:
        return verdict
    stated = case.folder.trace.header["media_samples"] / SAMPLE_RATE
    expected = case.reference.sample.duration_seconds
    if abs(stated - expected) > 0.2:
        return failed(f"{stated:.2f} s were streamed, the manifest says {expected:.2f} s")
    return verdict


RULE = Rule(
    "A2",
    "Padding",
    "Was the whole file sent, once, with nothing after it?",
    "every unit and picture of the file once, in order, zero fill only in the last unit, nothing "
    "after it, length as in the manifest",
    of_sample,
)
