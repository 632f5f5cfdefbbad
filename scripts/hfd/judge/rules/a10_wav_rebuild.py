"""A10: is the wav the sound in the trace, bit for bit?"""

from __future__ import annotations

from hfd.judge.rules.rule import Rule, SampleCase, by_findings
from hfd.judge.verdict import Verdict, failed


def of_sample(case: SampleCase) -> Verdict:
    if case.folder.wav is None:
        return failed("assistant_audio.wav is missing or no plain wav")
    return by_findings(case.folder, "A10", "rebuilt bit for bit")


RULE = Rule(
    "A10",
    "Wav rebuild",
    "Is the wav the sound in the trace, bit for bit?",
    "the wav is the trace's sound, bit for bit",
    of_sample,
)
