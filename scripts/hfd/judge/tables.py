"""From records to tables: outcomes, rates with both denominators, quantiles, paired tests."""

from __future__ import annotations

import csv
import io
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hfd.files import atomic_write, write_json
from hfd.judge import stats
from hfd.judge.comparisons import PRIMARY, paired_rows
from hfd.judge.definitions import STATED
from hfd.judge.endpoints import (
    HORIZON_S,
    LATENCY,
    RATES,
    VALUES,
    Rate,
    cluster_of,
    is_lost,
    rate_of,
)
from hfd.judge.labels import Labels, agreement, agreement_rows
from hfd.judge.measurement_card import card_markdown, measurement_card
from hfd.judge.outcome import STATUSES, outcome
from hfd.judge.rules import RULES
from hfd.judge.run import Audit
from hfd.judge.sample import Record
from hfd.judge.sensitivity_table import sensitivity_rows
from hfd.judge.shared_times import most_sessions
from hfd.judge.strata import strata_of
from hfd.judge.verdict import FAIL


def coverage(records: Sequence[Record]) -> dict[str, int]:
    """Counts of every status, and of what was expected."""
    count = Counter(record.status for record in records)
    return {"expected": len(records)} | {status: count[status] for status in STATUSES}


def metric_rows(audit: Audit) -> list[dict[str, Any]]:
    """One row for each model, metric, denominator and stratum, with 95 % intervals."""
    rows = []
    for model in audit.models:
        records = audit.records[model]
        rows += _rows_of(model, records, ("all", "all"))
        for stratum, members in _strata(records).items():
            rows += _rows_of(model, members, stratum, BY_STRATUM)
    return rows


DEFINED = {"definition": str(STATED)}
"""Said in every row of a table that somebody may cut out and quote."""
BY_STRATUM = frozenset({PRIMARY, "h5_hold_failure", "h11_responded", LATENCY})
"""What is shown for each part of the samples; more would be a table nobody reads."""


def _strata(records: Sequence[Record]) -> dict[tuple[str, str], list[Record]]:
    """Records by stratum, of what is divided into more than one part."""
    found: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        for stratum in strata_of(record.facts, record.task):
            found[stratum].append(record)
    parts = Counter(by for by, _ in found)
    return {key: members for key, members in sorted(found.items()) if parts[key[0]] > 1}


def _rows_of(
    model: str,
    records: Sequence[Record],
    stratum: tuple[str, str],
    metrics: Set[str] | None = None,
) -> list[dict[str, Any]]:
    """Rows of the named metrics; without names, of all."""
    rows: list[dict[str, Any]] = []
    for rate in RATES:
        if metrics is None or rate.key in metrics:
            rows += _rate_rows(model, rate, records)
    for key, label in VALUES.items():
        if metrics is not None and key not in metrics:
            continue
        measured = [r for r in records if r.metrics.get(key) is not None]
        values, clusters = [r.metrics[key] for r in measured], [cluster_of(r) for r in measured]
        for name, q in (("median", 0.5), ("p90", 0.9)):
            found = stats.quantile(values, q, clusters)
            if found:
                rows.append(_row(model, key, label, name, "scored", found))
    sessions = most_sessions(records)
    return [row | {"by": stratum[0], "stratum": stratum[1], "sessions": sessions} for row in rows]


def _rate_rows(model: str, rate: Rate, records: Sequence[Record]) -> list[dict[str, Any]]:
    """A rate over the samples that could be scored, over all that should count, and its bounds.

    ``strict``: a failed, missing or ineligible sample counts against the model. ``best``: it
    counts for the model; the truth lies between the two.
    """
    known = [r for r in records if rate_of(r, rate.key) is not None]
    lost = [cluster_of(r) for r in records if is_lost(r, rate)]
    hits = [bool(rate_of(r, rate.key)) for r in known]
    clusters = [cluster_of(r) for r in known]
    bounds = {"scored": (hits, clusters)}
    if rate.needs != "speech":
        everyone = clusters + lost
        bounds["strict"] = (hits + [rate.bad] * len(lost), everyone)
        if lost:
            bounds["best"] = (hits + [not rate.bad] * len(lost), everyone)
    rows = []
    for denominator, (values, names) in bounds.items():
        found = stats.rate(values, names) if values else None
        if found:
            rows.append(_row(model, rate.key, rate.label, "rate", denominator, found))
    return rows


def _row(
    model: str, key: str, label: str, statistic: str, denominator: str, found: stats.Estimate
) -> dict[str, Any]:
    return {
        "model": model,
        "metric": key,
        "label": label,
        "statistic": statistic,
        "denominator": denominator,
    } | {name: _rounded(value) for name, value in asdict(found).items()}


def sample_rows(audit: Audit) -> list[dict[str, Any]]:
    """One row for each model and sample: status, outcome, every metric, failed rules."""
    rows = []
    for model in audit.models:
        for record in audit.records[model]:
            failing = [code for code, v in record.verdicts.items() if v.status == FAIL]
            rows.append(
                {
                    "model": model,
                    "sample_id": record.sample_id,
                    "task": record.task,
                    "status": record.status,
                    "outcome": outcome(record),
                    "failed_rules": " ".join(sorted(failing, key=lambda code: int(code[1:]))),
                    "reason": record.reason,
                    "code": code_version(record),
                    "sessions": record.facts.get("sessions"),
                    "q1_s": record.facts.get("q1"),
                }
                | {key: _rounded(value) for key, value in record.metrics.items()}
            )
    return rows


def code_version(record: Record) -> str | None:
    """Which version of this repository made a result: ``commit`` or ``commit+changes``."""
    code = record.facts.get("code")
    if not code:
        return None
    parts = ((code["commit"] or code["version"])[:12], (code["dirty_diff_sha256"] or "")[:8])
    return "+".join(part for part in parts if part)


def rule_rows(audit: Audit) -> list[dict[str, Any]]:
    """One row for each model and rule."""
    return [
        {
            "model": model,
            "rule": rule.code,
            "title": rule.title,
            "status": audit.verdicts[model][rule.code].status,
            "reason": audit.verdicts[model][rule.code].reason,
        }
        for model in audit.models
        for rule in RULES
    ]


def write_tables(
    audit: Audit,
    out: Path,
    about: dict[str, Any],
    primary: str = PRIMARY,
    reruns: Mapping[str, Mapping[str, Any]] | None = None,
    labels: Labels | None = None,
) -> dict[str, Any]:
    """Write the CSV files and summary.json; return the summary.

    Args:
        audit: the outcome.
        out: the report's folder.
        about: date, manifest and code of the audit.
        primary: the primary endpoint's key.
        reruns: by model, what its probes found (``repeat`` holds the noise floor).
        labels: what people marked on label sheets.
    """
    metrics = metric_rows(audit)
    records = {model: audit.records[model] for model in audit.models}
    paired = _all_rounded(paired_rows(records, primary, _floors(reruns or {})))
    sensitivity = _all_rounded(sensitivity_rows(records))
    write_csv(out / "samples.csv", sample_rows(audit))
    write_csv(out / "metrics.csv", [row | DEFINED for row in metrics])
    write_csv(out / "rules.csv", rule_rows(audit))
    write_csv(out / "paired.csv", [row | DEFINED for row in paired])
    write_csv(out / "sensitivity.csv", sensitivity)
    agreed = agreement(labels, records)
    if agreed:
        write_csv(out / "agreement.csv", _all_rounded(agreement_rows(agreed)))
    summary = {
        "schema": "hfd-audit/1",
        "about": about,
        "models": audit.models,
        "coverage": {model: coverage(audit.records[model]) for model in audit.models},
        "outcomes": {
            model: dict(Counter(outcome(r) for r in audit.records[model])) for model in audit.models
        },
        "rules": {
            model: {code: verdict.as_dict() for code, verdict in audit.verdicts[model].items()}
            for model in audit.models
        },
        "metrics": metrics,
        "paired": paired,
        "sensitivity": sensitivity,
        "agreement": agreed,
        "statistics": _statistics(audit, primary),
        "cards": _cards(audit, out, reruns or {}),
        "reruns": {model: dict(found) for model, found in (reruns or {}).items()},
    }
    write_json(out / "summary.json", summary)
    return summary


def _floors(reruns: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, float]]:
    found = {model: probes.get("repeat") or {} for model, probes in reruns.items()}
    return {model: repeat["floors"] for model, repeat in found.items() if repeat.get("floors")}


def _cards(audit: Audit, out: Path, reruns: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Each model's measurement card, written as a page of its own too."""
    cards = {}
    for model in audit.models:
        card = measurement_card(audit.records[model], audit.verdicts[model])
        if card is not None:
            card["canary"] = reruns.get(model, {}).get("canary")
            cards[model] = card
            atomic_write(out / f"card_{model}.md", card_markdown(model, card))
    return cards


def _statistics(audit: Audit, primary: str) -> dict[str, Any]:
    """How the numbers were made, for whoever quotes them."""
    keys = {r.facts.get("clustered_by") for group in audit.records.values() for r in group}
    return {
        "primary": primary,
        "denominator": "strict",
        "interval": 1 - stats.ALPHA,
        "draws": stats.DRAWS,
        "flips": stats.FLIPS,
        "clustered_by": sorted(filter(None, keys)) or ["sample"],
        "horizon_s": HORIZON_S,
        "power": stats.POWER,
        "definition": asdict(STATED),
    }


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows as CSV (UTF-8, one header line); columns in order of first appearance."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    table = csv.DictWriter(text, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    atomic_write(path, text.getvalue())


def _all_rounded(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{name: _rounded(value) for name, value in row.items()} for row in rows]


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value
