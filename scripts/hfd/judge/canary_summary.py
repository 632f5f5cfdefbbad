"""How many canaries a model answered right: a number beside its chance, never a pass or fail."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hfd.files import read_json
from hfd.judge import stats

if TYPE_CHECKING:
    from hfd.judge.sample import Record

KINDS = ("spoken", "shown")


def summary_of(path: Path, records: Sequence[Record]) -> dict[str, Any]:
    """How many canaries of each kind a model answered right, and whether the run is this model's.

    Args:
        path: what hfd.probes.canary found.
        records: the audited results, which name the model that made them.

    Returns:
        ``nonce``, ``of_these_results`` (same weights, module, settings and name), and by kind
        ``share`` with ``low`` and ``high`` (Wilson), ``right``, ``n`` and ``chance``.
    """
    stored = read_json(path)
    identities = [r.facts["identity"] for r in records if r.facts.get("identity")]
    bound = stored["model"]
    found: dict[str, Any] = {
        "nonce": stored["nonce"],
        "of_these_results": bool(identities)
        and all(one[key] == bound[key] for one in identities for key in bound),
    }
    for kind in KINDS:
        answers = [one for one in stored["samples"].values() if one["kind"] == kind]
        right = sum(one["right"] for one in answers)
        share = stats.wilson(right, len(answers))
        if share is not None:
            found[kind] = {
                "share": share.value, "low": share.low, "high": share.high, "right": right,
                "n": len(answers), "chance": answers[0]["chance"],
            }  # fmt: skip
    return found


def card_lines(found: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """Rows of the measurement card."""
    if not found:
        return []
    told = "" if found["of_these_results"] else ", another model than these results"
    told += "" if found["nonce"] else ", words known beforehand (no nonce)"
    return [
        (
            f"remembers what was {kind} (a guess: {100 * found[kind]['chance']:.0f} %)",
            f"{found[kind]['right']} of {found[kind]['n']}{told}",
        )
        for kind in KINDS
        if kind in found
    ]
