"""What differs between two runs of the same samples: how they were made, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hfd.judge.outcome import outcome
from hfd.judge.run_facts import model_card
from hfd.judge.sample import Record

_COMPARED = ("module", "identity", "weights", "dtypes", "hardware", "clock", "unit_s")


def changes(first: Sequence[Record], second: Sequence[Record]) -> dict[str, list[Any]]:
    """What the two runs were made of, where it differs: name to [first, second].

    Settings and versions are named one by one (``settings.threshold``).
    """
    one, other = _made_of(first), _made_of(second)
    names = sorted(one.keys() | other.keys())
    return {
        name: [one.get(name), other.get(name)] for name in names if one.get(name) != other.get(name)
    }


def flipped(first: Sequence[Record], second: Sequence[Record]) -> list[dict[str, Any]]:
    """Samples with another outcome, one row each, in manifest order."""
    return [
        {
            "sample_id": a.sample_id,
            "task": a.task,
            "first": outcome(a),
            "second": outcome(b),
            "same_text": a.facts.get("text") == b.facts.get("text"),
        }
        for a, b in zip(first, second, strict=True)
        if outcome(a) != outcome(b)
    ]


def _made_of(records: Sequence[Record]) -> dict[str, Any]:
    card = model_card(records) or {}
    codes = {str(record.facts["code"]) for record in records if record.facts.get("code")}
    found = {name: card[name] for name in _COMPARED if name in card}
    found |= {f"settings.{key}": value for key, value in card.get("settings", {}).items()}
    found |= {f"versions.{key}": value for key, value in card.get("versions", {}).items()}
    return found | {"code": sorted(codes)}
