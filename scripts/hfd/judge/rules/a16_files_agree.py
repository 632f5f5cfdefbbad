"""A16: do result.json and provenance.json say what the trace says?"""

from __future__ import annotations

from hfd.judge.rules.rule import Rule, SampleCase, from_findings
from hfd.judge.verdict import Verdict, passed, unknown


def of_sample(case: SampleCase) -> Verdict:
    findings = [finding for finding in case.folder.findings if finding.rule == "A16"]
    if findings:
        return from_findings(findings)
    if not case.folder.whole:
        return unknown("a file is missing, so nothing can be compared")
    return passed("result.json and provenance.json say what the trace says")


RULE = Rule(
    "A16",
    "Files agree",
    "Do result.json and provenance.json say what the trace says?",
    "result.json and provenance.json say what the trace says, schemas hold, the hashes of result, "
    "wav and trace file agree (a flipped bit of compressed data may unpack to the same lines), "
    "published files are the worker's",
    of_sample,
)
