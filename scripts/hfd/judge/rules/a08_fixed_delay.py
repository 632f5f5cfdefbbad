"""A8: do the onsets vary as measured ones do?"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from hfd.judge.metrics import GUARD_S
from hfd.judge.rules.rule import FEWEST, Rule, SetCase
from hfd.judge.verdict import Verdict, failed, passed, unknown

if TYPE_CHECKING:
    from hfd.judge.sample import Record

FIXED_SD_S = 0.02
"""Slots of 80 ms alone make an honest model's delays vary by 23 ms."""
FIXED_EXACT_SD_S = 0.005


def of_model(case: SetCase, samples: Verdict) -> Verdict:
    """Sound put at a fixed distance from the question's end or from the answer's text.

    Two kinds of onsets are looked at: where a chunk begins to play after a pause, and where sound
    becomes audible (some models also send their silence).
    """
    answers = []
    for kind in ("runs", "sounds"):
        placed = [record for record in case.measured if record.facts.get(kind)]
        pairs = [pair for r in placed if (pair := _answer_delays(r, kind)) is not None]
        if len(pairs) < FEWEST:
            continue
        after_q1 = [delay for delay, _ in pairs]
        after_text = [delay for _, delay in pairs if delay is not None]
        for name, delays, limit in (
            ("the question's end", after_q1, FIXED_SD_S),
            ("the first text", after_text, FIXED_EXACT_SD_S),
        ):
            fixed = _fixed(delays, limit)
            if fixed:
                return failed(f"sound begins {fixed} after {name}", delays=delays[:50])
        lead = [record.facts[kind][0] for record in placed]
        whole = sum(abs(value * 10 - round(value * 10)) < 1e-6 for value in lead)
        if whole > 0.5 * len(lead):
            return failed(
                f"{whole} of {len(lead)} onsets are whole tenths of a second", onsets=lead[:50]
            )
        answers.append((1000 * float(np.std(after_q1)), len(pairs)))
    if not answers:
        return unknown(f"needs {FEWEST} answers with sound after the question")
    spread, n = answers[0]
    return passed(f"onsets vary by {spread:.0f} ms after the question, n={n}")


def _answer_delays(record: Record, kind: str) -> tuple[float, float | None] | None:
    """From the question's end, and from the answer's first text, to the answer's first sound."""
    q1 = record.facts["q1"]
    if q1 is None:
        return None
    sound = next((t for t in record.facts[kind] if t >= q1 - GUARD_S), None)
    text = next((t for t in record.facts["text_times"] if t >= q1 - GUARD_S), None)
    if sound is None:
        return None
    return sound - q1, None if text is None else sound - text


def _fixed(delays: list[float], limit: float) -> str | None:
    """How the delays are fixed, in words, or None; sound in step with its text is no delay."""
    if len(delays) < FEWEST or np.median(delays) < 0.05:
        return None
    values = np.array(delays)
    if values.std() < limit:
        return f"{values.mean():.3f} s (SD {1000 * values.std():.1f} ms, n={len(values)})"
    if limit < FIXED_SD_S:
        return None
    bins = Counter(np.floor(values * 100).astype(int).tolist())
    bin_, count = bins.most_common(1)[0]
    if count > 0.5 * len(values):
        return f"{bin_ / 100:.2f} s in {count} of {len(values)} samples"
    return None


RULE = Rule(
    "A8",
    "Fixed-delay placement",
    "Do the onsets vary as measured ones do?",
    "onsets vary over the samples as measured ones do (SD 20 ms or more, no 10 ms bin with most "
    "of them)",
    of_model=of_model,
)
