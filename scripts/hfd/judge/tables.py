"""From records to tables: outcomes, rates with both denominators, quantiles, paired tests."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

from hfd.files import atomic_write, write_json
from hfd.judge import stats
from hfd.judge.metrics import YIELD_S
from hfd.judge.outcome import STATUSES, UNUSABLE, outcome
from hfd.judge.rules import RULES
from hfd.judge.run import Audit
from hfd.judge.sample import Record
from hfd.judge.verdict import FAIL


@dataclass(frozen=True)
class Rate:
    """A yes/no metric. `bad` is the value that counts against the model."""

    key: str
    label: str
    bad: bool


RATES = (
    Rate("h1_gap_takeover", "H1 takes the turn in the gap", True),
    Rate("h2_prefix_barge_in", "H2 barges in on the prefix", True),
    Rate("h3_correction_barge_in", "H3 barges in on the correction", True),
    Rate("h5_hold_failure", "H5 hold failure (H1, H2 or H3)", True),
    Rate("h8_no_yield", "H8 does not yield within 2 s", True),
    Rate("h10_spanning", "H10 speech spans the question's end", True),
    Rate("h11_responded", "H11 responds before the file ends", False),
    Rate("h11_late", "H11 responds late", True),
    Rate("h18_abrupt_end", "H18 ends abruptly", True),
    Rate("fdb_tor_whole", "FDB take-over anywhere", True),
    Rate("mtr_pause", "MTR take-over in the pause + 1 s", True),
)
VALUES = {
    "h6_overlap_s": "H6 overlap with the user, s",
    "h6_overlap_ratio": "H6 overlap, share of the user's speech",
    "h7_gap_speech_s": "H7 speech in the gap, s",
    "h8_yield_s": "H8 time to yield, s",
    "h9_response_s": "H9 response latency, s",
    "h9_settled_s": "H9 settled start after the question, s",
    "h12_first_text_s": "H12 first text, s",
    "h13_first_audio_s": "H13 first audio packet, s",
    "h14_text_to_audio_s": "H14 text to audio, s",
    "h15_underrun_s": "H15 playback underrun, s",
    "h16_rtf_compute": "H16 compute per second of speech",
    "h16_rtf_stream": "H16 stream time per second of speech",
    "h17_saved_minus_delivered_s": "H17 saved minus delivered, s",
    "h20_wer": "H20 word error rate of the voice",
    "h21_han_per_s": "H21 Chinese characters per second",
    "h22_stale_share": "H22 words of the abandoned question (proxy)",
}


def rate_of(record: Record, key: str) -> bool | None:
    """A yes/no metric of one sample; None where it is not defined."""
    if key == "h8_no_yield":
        seconds = record.metrics.get("h8_yield_s")
        return None if seconds is None else seconds > YIELD_S
    return record.metrics.get(key)


def coverage(records: Sequence[Record]) -> dict[str, int]:
    """Counts of every status, and of what was expected."""
    count = Counter(record.status for record in records)
    return {"expected": len(records)} | {status: count[status] for status in STATUSES}


def metric_rows(audit: Audit) -> list[dict[str, Any]]:
    """One row for each model, metric and denominator, with 95 % intervals."""
    rows = []
    for model in audit.models:
        records = audit.records[model]
        for rate in RATES:
            rows += _rate_rows(model, rate, records)
        for key, label in VALUES.items():
            values = [r.metrics[key] for r in records if r.metrics.get(key) is not None]
            for name, quantile in (("median", 0.5), ("p90", 0.9)):
                found = stats.bootstrap(values, quantile)
                if found:
                    rows.append(_row(model, key, label, name, "scored", found))
    return rows


def _rate_rows(model: str, rate: Rate, records: Sequence[Record]) -> list[dict[str, Any]]:
    """A rate over the samples that could be scored, and strictly over all that were expected.

    Strict: a failed, missing or ineligible sample counts against the model.
    """
    scored = [value for r in records if (value := rate_of(r, rate.key)) is not None]
    if not scored:
        return []
    hesitation_only = rate.key in _HESITATION_RATES
    tasks = {r.task for r in records if rate_of(r, rate.key) is not None}
    lost = sum(r.status in UNUSABLE and (not hesitation_only or r.task in tasks) for r in records)
    hits = sum(scored)
    strict_hits = hits + (lost if rate.bad else 0)
    rows = [_row(model, rate.key, rate.label, "rate", "scored", stats.wilson(hits, len(scored)))]
    if rate.key != "h8_no_yield":  # defined only where the model was speaking at q0
        strict = stats.wilson(strict_hits, len(scored) + lost)
        rows.append(_row(model, rate.key, rate.label, "rate", "strict", strict))
    return rows


_HESITATION_RATES = (
    "h1_gap_takeover",
    "h2_prefix_barge_in",
    "h3_correction_barge_in",
    "h5_hold_failure",
    "fdb_tor_whole",
    "mtr_pause",
)


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


def paired_rows(audit: Audit) -> list[dict[str, Any]]:
    """McNemar (yes/no) and Wilcoxon (H9) between every two models, on the ids both have."""
    rows = []
    for first, second in combinations(audit.models, 2):
        pairs = list(zip(audit.records[first], audit.records[second], strict=True))
        for rate in RATES:
            both = [
                (a, b)
                for x, y in pairs
                if (a := rate_of(x, rate.key)) is not None
                and (b := rate_of(y, rate.key)) is not None
            ]
            p = stats.mcnemar([a for a, _ in both], [b for _, b in both])
            if p is not None:
                rows.append(_paired(first, second, rate.key, "McNemar", len(both), p))
        key = "h9_response_s"
        both = [
            (x.metrics[key], y.metrics[key])
            for x, y in pairs
            if x.metrics.get(key) is not None and y.metrics.get(key) is not None
        ]
        p = stats.wilcoxon([a for a, _ in both], [b for _, b in both])
        if p is not None:
            rows.append(_paired(first, second, key, "Wilcoxon", len(both), p))
    return rows


def _paired(first: str, second: str, key: str, test: str, n: int, p: float) -> dict[str, Any]:
    return {"first": first, "second": second, "metric": key, "test": test, "n": n, "p": p}


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


def write_tables(audit: Audit, out: Path, about: dict[str, Any]) -> dict[str, Any]:
    """Write the CSV files and summary.json; return the summary."""
    metrics, paired = metric_rows(audit), paired_rows(audit)
    write_csv(out / "samples.csv", sample_rows(audit))
    write_csv(out / "metrics.csv", metrics)
    write_csv(out / "rules.csv", rule_rows(audit))
    write_csv(out / "paired.csv", paired)
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
    }
    write_json(out / "summary.json", summary)
    return summary


def write_csv(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Write rows as CSV (UTF-8, one header line); columns in order of first appearance."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    text = io.StringIO()
    table = csv.DictWriter(text, columns, lineterminator="\n")
    table.writeheader()
    table.writerows(rows)
    atomic_write(path, text.getvalue())


def _rounded(value: Any) -> Any:
    return round(value, 6) if isinstance(value, float) else value
