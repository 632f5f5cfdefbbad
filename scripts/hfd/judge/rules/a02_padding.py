"""A2: was the whole file sent, once, with nothing after it?"""

from __future__ import annotations

from hfd.judge.rules.rule import Rule, SampleCase, by_findings
from hfd.judge.verdict import PASS, Verdict, failed
from hfd.media_time import FPS


def of_sample(case: SampleCase) -> Verdict:
    verdict = by_findings(case.folder, "A2", "every unit once, zero fill only in the last")
    if verdict.status != PASS or case.reference is None:
        return verdict
    streamed = case.folder.trace.header["media_frames"]
    told = {
        "the manifest's duration": round(case.reference.sample.duration_seconds * FPS),
        "the file": len(case.reference.frames),
    }
    for name, frames in told.items():
        if streamed != frames:
            return failed(f"{streamed} video frames were streamed, {name} has {frames}")
    return verdict


RULE = Rule(
    "A2",
    "Padding",
    "Was the whole file sent, once, with nothing after it?",
    "every unit and picture of the file once, in order, zero fill only in the last unit, nothing "
    "after it; as many frames as the file and the manifest's duration have",
    of_sample,
)
