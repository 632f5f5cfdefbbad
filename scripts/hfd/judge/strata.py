"""What is known of a sample itself, whatever a model made of it: for denominators and strata."""

from __future__ import annotations

import re
from typing import Any

from hfd.data.manifest import Sample
from hfd.judge.official import scores_of
from hfd.judge.reference import Reference

HESITATION = "hesitation"
CLUSTER_KEYS = ("source_video", "speaker")
"""Keys of a manifest row that name what samples share; the first that a row has counts."""
GAPS_S = ((0.0, 0.5), (0.5, 1.0), (1.0, 2.0), (2.0, float("inf")))
_HAN = re.compile(r"[\u3400-\u9fff]")


def sample_facts(sample: Sample, reference: Reference | None) -> dict[str, Any]:
    """Facts of one sample, also of one that a model lost.

    Returns:
        ``asked``: whether a question is asked; ``hesitates``: whether it is broken off and asked
        anew; ``gap_s``: seconds between the two, or None; ``language``: ``zh``, ``en`` or None;
        ``cluster``: what it shares with others, or its own id; ``clustered_by``: which key said so;
        ``scores``: what an outside set asks for.
    """
    question = reference.question if reference else None
    gap = question.gap if question else None
    key = next((key for key in CLUSTER_KEYS if sample.row.get(key)), None)
    return {
        "asked": question is not None if reference else sample.task == HESITATION,
        "hesitates": gap is not None if reference else sample.task == HESITATION,
        "gap_s": None if gap is None else gap.length,
        "language": _language(sample, reference),
        "cluster": f"{key}:{sample.row[key]}" if key else sample.sample_id,
        "clustered_by": key,
        "scores": list(scores_of(sample.row)),
    }


def strata_of(facts: dict[str, Any], task: str) -> list[tuple[str, str]]:
    """The strata that a sample belongs to, as (what is divided, which part)."""
    found = [("task", task)]
    if facts.get("language"):
        found.append(("language", facts["language"]))
    if facts.get("gap_s") is not None:
        low, high = next(part for part in GAPS_S if facts["gap_s"] < part[1])
        found.append(("gap", f"{low:g}-{high:g} s" if high < float("inf") else f"over {low:g} s"))
    return found


def _language(sample: Sample, reference: Reference | None) -> str | None:
    if stated := sample.row.get("language"):
        return str(stated)
    adapter = reference.adapter if reference else None
    if adapter is None:
        return None
    text = "".join(event.text or event.spoken_text or "" for event in adapter.events)
    if not text.strip():
        return None
    return "zh" if _HAN.search(text) else "en"
