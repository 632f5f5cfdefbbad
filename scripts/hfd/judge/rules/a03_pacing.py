"""A3: was each unit sent only when its last sample existed?"""

from __future__ import annotations

import numpy as np

from hfd.judge.rules.rule import Rule, SampleCase, by_findings
from hfd.judge.verdict import PASS, Verdict, failed, passed, unknown

MAX_LAG_S = 0.5


def of_sample(case: SampleCase) -> Verdict:
    verdict = by_findings(case.folder, "A3", "no unit was sent early")
    if verdict.status != PASS:
        return verdict
    trace = case.folder.trace
    inputs = [line for _, line in trace.of("input")]
    lags = np.array([line["t"] - line["due"] for line in inputs])
    if not len(lags):
        return unknown("nothing was sent")
    lag = {"lag_p95_ms": round(1000 * float(np.percentile(lags, 95)), 1)}
    if trace.header["clock"] == "virtual":
        return passed("each unit at max(model free, its last sample exists), virtual clock", **lag)
    took = (inputs[-1]["mono_ns"] - inputs[0]["mono_ns"]) / 1e9
    due = inputs[-1]["due"] - inputs[0]["due"]
    if took < due - MAX_LAG_S:
        return failed(f"{due:.2f} s of media were sent in {took:.2f} s of real time", **lag)
    if lags.max() > MAX_LAG_S:
        return failed(f"a unit was sent {lags.max():.2f} s late: the run was not online", **lag)
    return passed("each unit at its absolute deadline", **lag)


RULE = Rule(
    "A3",
    "Pacing",
    "Was each unit sent only when its last sample existed?",
    "no unit sent before its last sample exists; in real time, no faster and not more than 0.5 s "
    "late",
    of_sample,
)
