"""How far the rates hang on the definitions: the same outputs under others, one at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from hfd.judge import stats
from hfd.judge.definitions import ALTERNATIVES, STATED
from hfd.judge.endpoints import LATENCY, RATES, VALUES, cluster_of, strict_rate_of
from hfd.judge.sample import Record

ALL = frozenset(
    {rate.key for rate in RATES if rate.key != "h18_abrupt_end" and rate.needs != "outside"}
    | {LATENCY}
)
"""What rests on a definition of ours."""


def sensitivity_rows(records: Mapping[str, Sequence[Record]]) -> list[dict[str, Any]]:
    """Every rate (strict) and the median latency of every model under every definition.

    Returns:
        One row for each model, definition and metric, the stated definition first: the definition
        in full, the value with its 95 % interval, ``shift`` (value minus the stated one) and
        ``changed`` (samples of which the metric has another value).
    """
    rows = []
    for model, stated in records.items():
        base = {row["metric"]: row for row in _rows(stated, ALL)}
        for name, definition in {"stated": STATED, **ALTERNATIVES}.items():
            under = [_under(record, name) for record in stated]
            changed = Counter(key for record in stated for key in _changed(record, name))
            moved = {row["metric"]: row for row in _rows(under, set(changed))}
            same = {key: row for key, row in base.items() if key not in changed}
            for key, row in (same | moved).items():
                shift = row["value"] - base[key]["value"] if key in base else None
                rows.append(
                    {"model": model, "definition": name, **asdict(definition), **row}
                    | {"shift": shift, "changed": changed[key]}
                )
    return rows


def _under(record: Record, name: str) -> Record:
    other = record.facts.get("under", {}).get(name)
    return replace(record, metrics=record.metrics | other) if other else record


def _changed(record: Record, name: str) -> set[str]:
    """Keys of `RATES` and the latency that have another value under a definition."""
    other = set(record.facts.get("under", {}).get(name, {}))
    return other | ({"h8_no_yield"} if "h8_yield_s" in other else set())


def _rows(records: Sequence[Record], keys: Collection[str]) -> list[dict[str, Any]]:
    rows = []
    for rate in RATES:
        if rate.key not in keys:
            continue
        known = [r for r in records if strict_rate_of(r, rate) is not None]
        hits = [bool(strict_rate_of(r, rate)) for r in known]
        found = stats.rate(hits, [cluster_of(r) for r in known]) if known else None
        if found:
            denominator = "scored only" if rate.needs == "speech" else "strict"
            rows.append(_row(rate.key, rate.label, "rate", denominator, found))
    if LATENCY in keys:
        timed = [r for r in records if r.metrics.get(LATENCY) is not None]
        values = [r.metrics[LATENCY] for r in timed]
        found = stats.quantile(values, 0.5, [cluster_of(r) for r in timed])
        if found:
            rows.append(_row(LATENCY, VALUES[LATENCY], "median", "scored", found))
    return rows


def _row(
    key: str, label: str, statistic: str, denominator: str, found: stats.Estimate
) -> dict[str, Any]:
    return {
        "metric": key,
        "label": label,
        "statistic": statistic,
        "denominator": denominator,
        **asdict(found),
    }
