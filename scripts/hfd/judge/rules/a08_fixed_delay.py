"""A8: do the onsets vary as measured ones do?

A model answers when a unit is over, so the distance from the question's end to the answer varies
at least as the question's end lies in its unit, and every distance varies as compute does. Sound
that was put at a fixed distance does neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hfd.judge.definitions import STATED
from hfd.judge.rules.rule import ALMOST_NEVER, FEWEST, Rule, SetCase
from hfd.judge.verdict import Verdict, failed, passed, unknown

if TYPE_CHECKING:
    from hfd.judge.sample import Record

FEWEST_ANSWERS = 6
MOST_SD_S = 0.02
SHARE_OF_UNIT = 0.4
"""Of what the units alone make onsets vary by, an honest set may lose this much by chance."""
SAME_S = 2e-4
"""No two computations take the same time to 0.2 ms."""
SAME_IN_UNITS_S = 5e-6
"""Times are written in microseconds; a sound that is sent a whole number of units after its text,
with next to no compute, varies by some 10."""
SHORTEST_S = 0.05
BIN_S = 0.01


def of_model(case: SetCase, samples: Verdict) -> Verdict:
    """Sound put at a fixed distance from the question's end or from the answer's text.

    Two kinds of onsets are looked at: where a chunk begins to play after a pause, and where sound
    becomes audible (some models also send their silence).
    """
    spreads = []
    for kind in ("runs", "sounds"):
        placed = [r for r in case.measured if r.facts.get(kind) and r.facts["q1"] is not None]
        answers = [(r, at) for r in placed if (at := _answer(r, kind)) is not None]
        if len(answers) < FEWEST_ANSWERS:
            continue
        fixed = _after_question(answers) or _after_text([record for record, _ in answers])
        fixed = fixed or _whole_tenths([record.facts[kind][0] for record in placed])
        if fixed:
            return failed(f"sound begins {fixed}", samples=[r.sample_id for r, _ in answers])
        spreads.append((float(np.std([at - r.facts["q1"] for r, at in answers])), len(answers)))
    if not spreads:
        return unknown(f"needs {FEWEST_ANSWERS} answers with sound after the question")
    spread, n = spreads[0]
    return passed(f"onsets vary by {1000 * spread:.0f} ms after the question, n={n}")


def _answer(record: Record, kind: str) -> float | None:
    """The first onset that answers the question."""
    earliest = record.facts["q1"] - STATED.margin_s
    return next((t for t in record.facts[kind] if t >= earliest), None)


def _after_question(answers: Sequence[tuple[Record, float]]) -> str | None:
    answers = _of_different_phase(answers)
    delays = np.array([at - record.facts["q1"] for record, at in answers])
    if len(delays) < FEWEST or np.median(delays) < SHORTEST_S:
        return None
    least = least_spread([record.facts["q1"] for record, _ in answers], _unit_s(answers))
    if delays.std() < min(MOST_SD_S, SHARE_OF_UNIT * least):
        told = f"SD {1000 * delays.std():.1f} ms where the units alone make {1000 * least:.1f} ms"
        return f"{delays.mean():.3f} s after the question's end ({told}, n={len(delays)})"
    if least < BIN_S:
        return None
    from scipy.special import bdtrc  # the upper tail of a binomial; slow to import

    likely = min(1.0, 1.5 * BIN_S / (least * 12**0.5))
    bins = Counter(np.floor(delays / BIN_S).astype(int).tolist())
    bin_, count = bins.most_common(1)[0]
    chance = len(bins) * float(bdtrc(count - 1, len(delays), likely))
    if count > 0.5 * len(delays) and chance < ALMOST_NEVER:
        share = f"{count} of {len(delays)} samples"
        return f"{bin_ * BIN_S:.2f} s after the question's end in {share}"
    return None


def _of_different_phase(
    answers: Sequence[tuple[Record, float]],
) -> list[tuple[Record, float]]:
    """One answer for each place (to 1 ms) in the unit at which a question ends.

    Questions that are one clip at one time get answers at one time: they tell nothing more.
    """
    unit_s = _unit_s(answers)
    first: dict[int, tuple[Record, float]] = {}
    for record, at in answers:
        first.setdefault(round(1000 * (record.facts["q1"] % unit_s)), (record, at))
    return list(first.values())


def _unit_s(answers: Sequence[tuple[Record, float]]) -> float:
    return float(np.median([record.facts["unit_s"] for record, _ in answers]))


def least_spread(ends: Sequence[float], unit_s: float) -> float:
    """The least SD of answers that begin when a unit is over, a fixed time after the ends.

    How much later than that fixed time the unit is over depends on where the end lies in its unit;
    the fixed time is not known, so the one is taken that makes the SD least.
    """
    phases = np.mod(np.array(ends), unit_s)
    shifts = np.linspace(0, unit_s, 64, endpoint=False)
    waits = np.mod(-phases[None, :] - shifts[:, None], unit_s)
    return float(waits.std(axis=1).min())


def _after_text(records: Sequence[Record]) -> str | None:
    """The answer's first sound after its first text, as they arrived."""
    delays = []
    for record in records:
        earliest = record.facts["q1"] - STATED.margin_s
        text = next((t for t in record.facts["text_times"] if t >= earliest), None)
        sound = next((t for t in record.facts["audio_times"] if t >= earliest), None)
        if text is not None and sound is not None:
            delays.append(sound - text)
    if len(delays) < FEWEST_ANSWERS or np.median(delays) < SHORTEST_S:
        return None
    mean, spread = float(np.mean(delays)), float(np.std(delays))
    units = mean / float(np.median([record.facts["unit_s"] for record in records]))
    in_units = abs(units - round(units)) < 0.05
    if spread < (SAME_IN_UNITS_S if in_units else SAME_S):
        return f"{mean:.3f} s after the first text (SD {1e6 * spread:.0f} µs, n={len(delays)})"
    return None


def _whole_tenths(onsets: Sequence[float]) -> str | None:
    whole = sum(abs(value * 10 - round(value * 10)) < 1e-6 for value in onsets)
    if whole > 0.5 * len(onsets):
        return f"at whole tenths of a second in {whole} of {len(onsets)} samples"
    return None


RULE = Rule(
    "A8",
    "Fixed-delay placement",
    "Do the onsets vary as measured ones do?",
    "over at least 6 answers, onsets vary after the question by more than 20 ms or 0.4 of what the "
    "model's units alone make them vary (by where the question's end lies in its unit: nothing is "
    "told where it always lies alike), and after the text by more than 0.2 ms (5 µs where that is "
    "a whole number of units); no 10 ms bin with more of them than chance allows",
    of_model=of_model,
)
