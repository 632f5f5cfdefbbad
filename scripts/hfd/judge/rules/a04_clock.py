"""A4: is the trace whole, unchanged and on one clock?"""

from __future__ import annotations

from hfd.judge.clock_check import is_exact, own_s
from hfd.judge.rules.rule import Rule, SampleCase, by_findings
from hfd.judge.verdict import PASS, Verdict, unknown

MOST_OWN_SHARE = 0.5
"""Decoding and hashing take a tenth of the media's time on a common machine."""


def of_sample(case: SampleCase) -> Verdict:
    verdict = by_findings(case.folder, "A4", "chain, numbering and clock hold")
    trace = case.folder.trace
    if verdict.status != PASS or trace.header["clock"] != "virtual":
        return verdict
    if not is_exact(trace):
        return unknown("an older trace: it does not say what its clock left out")
    own, media = own_s(trace), trace.header["media_samples"] / 16_000
    if own > 0.5 + MOST_OWN_SHARE * media:
        return unknown(
            f"the workflow's own work took {own:.2f} s of {media:.2f} s of media, outside the "
            "clock: compute could hide there"
        )
    return verdict


RULE = Rule(
    "A4",
    "Order and clock",
    "Is the trace whole, unchanged and on one clock?",
    "hash chain, numbering, canonical lines and end are whole; time never runs backwards; on the "
    "arrival clock it is the machine's monotonic clock to 20 ms, on the virtual one every time is "
    "computed again from the line before it, to 10 µs; of a step at most 50 ms for an event and "
    "0.6 s for a sample are the recorder's own (not evidenced: decoding and hashing between steps "
    "take more than half of the media's time)",
    of_sample,
)
