"""Models against each other, sample by sample: differences, intervals, corrected tests."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations
from typing import Any

import numpy as np

from hfd.judge import stats
from hfd.judge.endpoints import (
    HORIZON_S,
    LATENCY,
    RATES,
    VALUES,
    Rate,
    cluster_of,
    is_lost,
    rate_of,
    strict_rate_of,
)
from hfd.judge.sample import Record
from hfd.judge.shared_times import most_sessions

PRIMARY = "h1_gap_takeover"
"""The endpoint that is named before the data are looked at; judged on the strict denominator."""
_COMPARED_VALUES = tuple(
    key for key in VALUES if key not in (LATENCY, "h17_saved_minus_delivered_s", "h16_rtf_stream")
)


@dataclass(frozen=True)
class Pairs:
    """The samples that two models share for one endpoint, with both values.

    Attributes:
        first, second: values by pair.
        clusters: what each pair's sample shares with others.
    """

    first: list[float]
    second: list[float]
    clusters: list[str]

    @property
    def differences(self) -> np.ndarray:
        """First minus second."""
        return np.asarray(self.first, float) - np.asarray(self.second, float)


def paired_rows(
    records: Mapping[str, Sequence[Record]],
    primary: str = PRIMARY,
    floors: Mapping[str, Mapping[str, float]] | None = None,
) -> list[dict[str, Any]]:
    """Every two models on every endpoint, on the samples that both have.

    A model whose times are shared (`hfd.judge.shared_times`) is compared with no other.

    Args:
        records: by model; the same samples in the same order.
        primary: the primary endpoint's key (its strict rate); all others are secondary.
        floors: by model and endpoint, the difference that a model shows against itself
            (repeat_probe): a difference that does not exceed the larger floor is ``grey``.

    Returns:
        One row for each pair and endpoint with both values, the difference (first minus second),
        its 95 % interval, p, Holm's p within its family, and for a rate the difference that this
        many pairs could have found, and how far it could lie if lost samples had been otherwise.
    """
    rows = []
    own = [model for model, found in records.items() if most_sessions(found) == 1]
    for first, second in combinations(own, 2):
        couples = list(zip(records[first], records[second], strict=True))
        for row in _compare(couples):
            family = row["metric"] == primary and row["denominator"] in ("strict", "scored only")
            row |= {"first": first, "second": second}
            row["family"] = "primary" if family else "secondary"
            row["floor"] = _floor(row, floors or {}, first, second)
            row["grey"] = row["floor"] is not None and abs(row["difference"]) <= row["floor"]
            rows.append(row)
    for family in ("primary", "secondary"):
        members = [row for row in rows if row["family"] == family]
        for row, adjusted in zip(members, stats.holm([r["p"] for r in members]), strict=True):
            row["p_holm"] = adjusted
    order = ("first", "second", "metric", "denominator", "test", "family")
    return [{name: row[name] for name in order} | row for row in rows]


def _compare(couples: list[tuple[Record, Record]]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any] | None] = []
    for rate in RATES:
        # What no lost sample can belong to has one denominator only.
        scored = "scored only" if rate.needs == "speech" else "scored"
        rows.append(_rate_row(couples, rate, scored, partial(_scored, rate)))
        if rate.needs != "speech":
            row = _rate_row(couples, rate, "strict", partial(_strict, rate))
            rows.append(row and row | _lost_bounds(couples, rate))
    rows += _latency_rows(couples)
    for key in _COMPARED_VALUES:
        pairs = _pairs(couples, partial(_measured, key))
        if pairs is not None:
            rows.append(_difference_row(key, VALUES[key], "scored", pairs))
    return [row for row in rows if row is not None]


def _lost_bounds(couples: list[tuple[Record, Record]], rate: Rate) -> dict[str, float | None]:
    """The least and largest difference that lost samples allow; None where none is lost.

    A refusal or a service error says nothing of what the model would have done: each lost value
    may have been yes or no.
    """
    lost = [(is_lost(a, rate), is_lost(b, rate)) for a, b in couples]
    if not any(a or b for a, b in lost):
        return {"lost_low": None, "lost_high": None}
    ends = []
    for first_guess, second_guess in ((False, True), (True, False)):
        differences = [
            float(first_guess if a_lost else x) - float(second_guess if b_lost else y)
            for (a, b), (a_lost, b_lost) in zip(couples, lost, strict=True)
            if (x := strict_rate_of(a, rate)) is not None
            and (y := strict_rate_of(b, rate)) is not None
        ]
        ends.append(float(np.mean(differences)))
    return {"lost_low": ends[0], "lost_high": ends[1]}


def _scored(rate: Rate, record: Record) -> bool | None:
    return rate_of(record, rate.key)


def _strict(rate: Rate, record: Record) -> bool | None:
    return strict_rate_of(record, rate)


def _measured(key: str, record: Record) -> float | None:
    return record.metrics.get(key)


def _rate_row(
    couples: list[tuple[Record, Record]],
    rate: Rate,
    denominator: str,
    value: Callable[[Record], Any],
) -> dict[str, Any] | None:
    pairs = _pairs(couples, value)
    if pairs is None:
        return None
    row = _difference_row(rate.key, rate.label, denominator, pairs)
    discordant = float(np.mean(pairs.differences != 0))
    row["discordant"] = discordant
    row["detectable"] = stats.detectable_difference(len(pairs.first), discordant)
    return row


def _difference_row(key: str, label: str, denominator: str, pairs: Pairs) -> dict[str, Any]:
    estimate = stats.mean(pairs.differences, pairs.clusters)
    assert estimate is not None
    return {
        "metric": key,
        "label": label,
        "denominator": denominator,
        "n": len(pairs.first),
        "clusters": len(set(pairs.clusters)),
        "first_value": float(np.mean(pairs.first)),
        "second_value": float(np.mean(pairs.second)),
        "difference": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "test": "sign flip",
        "p": stats.sign_flip(pairs.differences, pairs.clusters),
    }


def _latency_rows(couples: list[tuple[Record, Record]]) -> list[dict[str, Any]]:
    """Response latency with no answer as the worst: by rank, and as a restricted mean."""
    asked = [(a, b) for a, b in couples if _was_asked(a) and _was_asked(b)]
    if not any(r.metrics.get(LATENCY) is not None for pair in asked for r in pair):
        return []
    first = [a.metrics.get(LATENCY) for a, _ in asked]
    second = [b.metrics.get(LATENCY) for _, b in asked]
    clusters = [cluster_of(a) for a, _ in asked]
    restricted = Pairs(
        [stats.restricted(v, HORIZON_S) for v in first],
        [stats.restricted(v, HORIZON_S) for v in second],
        clusters,
    )
    label = f"{VALUES[LATENCY]}, restricted mean up to {HORIZON_S:g} s"
    row = _difference_row(LATENCY, label, "strict", restricted)
    wins, p = stats.worst_rank(first, second, clusters)
    rank = {
        **row,
        "metric": f"{LATENCY}:rank",
        "label": "H9 quicker in so many more pairs (no answer is the worst)",
        "first_value": None,
        "second_value": None,
        "difference": wins,
        "test": "sign flip of ranks",
        "p": p,
    }
    found = stats.mean(_win_signs(first, second), clusters)
    assert found is not None
    rank |= {"low": found.low, "high": found.high}
    return [row, rank]


def _win_signs(first: Sequence[float | None], second: Sequence[float | None]) -> list[float]:
    """+1 where first is quicker, -1 where second is, 0 for a tie."""
    signs = []
    for a, b in zip(first, second, strict=True):
        a_key, b_key = (float("inf") if v is None else v for v in (a, b))
        signs.append(0.0 if a_key == b_key else (1.0 if a_key < b_key else -1.0))
    return signs


def _pairs(couples: list[tuple[Record, Record]], value: Callable[[Record], Any]) -> Pairs | None:
    """The pairs in which both models have a value; None if there is none."""
    both = [
        (float(x), float(y), cluster_of(a))
        for a, b in couples
        if (x := value(a)) is not None and (y := value(b)) is not None
    ]
    if not both:
        return None
    first, second, clusters = zip(*both, strict=True)
    return Pairs(list(first), list(second), list(clusters))


def _was_asked(record: Record) -> bool:
    return bool(record.facts.get("asked", record.metrics.get(LATENCY) is not None))


def _floor(
    row: Mapping[str, Any], floors: Mapping[str, Mapping[str, float]], first: str, second: str
) -> float | None:
    metric = row["metric"]
    known = [floors[model][metric] for model in (first, second) if metric in floors.get(model, {})]
    return max(known) if known else None
