"""A7: do the outputs come while the file still plays?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from hfd.judge.rules.rule import FEWEST, Rule, SetCase
from hfd.judge.verdict import Verdict, failed, passed, unknown

if TYPE_CHECKING:
    from hfd.judge.sample import Record


def of_model(case: SetCase, samples: Verdict) -> Verdict:
    """Outputs that all come after the file's end, at once, or on a grid of made-up times."""
    spoken = [record for record in case.measured if _times(record)]
    if not spoken:
        return unknown("no sample has an output")
    grid = [record.sample_id for record in spoken if _on_grid(_times(record))]
    if grid:
        return failed(
            f"{len(grid)} of {len(spoken)} samples have output times on an exact millisecond grid: "
            "they were written, not measured",
            samples=grid,
        )
    late = [record for record in spoken if record.facts["after_end"]]
    if len(late) < 0.9 * len(spoken):
        share = f"{len(spoken) - len(late)} of {len(spoken)}"
        return passed(f"{share} samples answer while the file still plays")
    # In real time a slow server answers after the end too; a step that is computed by itself
    # would have spoken before it was given the rest of the file.
    one = [r for r in late if len(r.facts["text_times"]) <= 1 and r.facts["clock"] == "virtual"]
    ids = [record.sample_id for record in late]
    if len(one) >= 0.9 * len(late) and len(late) >= FEWEST:
        return failed(
            f"{len(late)} of {len(spoken)} samples answer only after the file's end, and their "
            "text comes in one piece: generated offline",
            samples=ids,
        )
    return unknown(
        f"{len(late)} of {len(spoken)} samples answer only after the file's end: "
        "a slow model and an offline one look alike here",
        samples=ids,
    )


def _times(record: Record) -> list[float]:
    return sorted(record.facts.get("text_times", []) + record.facts.get("audio_times", []))


def _on_grid(times: list[float]) -> bool:
    """Measured times do not all fall on whole milliseconds."""
    micros = np.rint(np.array(times) * 1e6)
    return len(times) >= 3 and bool((micros % 1000 == 0).all())


RULE = Rule(
    "A7",
    "Offline signature",
    "Do the outputs come while the file still plays?",
    "outputs come while the file plays, not at once after it, and not on a grid of made-up times "
    "(answers that come only after the end, in pieces or in real time: not evidenced)",
    of_model=of_model,
)
