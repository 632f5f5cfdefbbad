"""The data of the report's first page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hfd.judge import curves
from hfd.judge.outcome import OUTCOMES, outcome
from hfd.judge.report.pages import write_script
from hfd.judge.rules import RULES
from hfd.judge.run import Audit
from hfd.judge.run_facts import model_card
from hfd.judge.verdict import FAIL

_COLUMNS = {
    "h9_response_s": "h9",
    "h9_settled_s": "settled",
    "h12_first_text_s": "h12",
    "h13_first_audio_s": "h13",
    "h6_overlap_s": "overlap",
    "h16_rtf_compute": "rtf",
    "h20_wer": "wer",
}


def write_index(audit: Audit, out: Path, summary: dict[str, Any]) -> None:
    """Write ``index.js``: the summary, and one short row for each model and sample."""
    rows = []
    for number, model in enumerate(audit.models):
        for record in audit.records[model]:
            failing = [c for c, v in record.verdicts.items() if v.status == FAIL]
            values = [_short(record.metrics.get(key)) for key in _COLUMNS]
            rows.append(
                [
                    number,
                    record.sample_id,
                    record.task,
                    outcome(record),
                    record.status,
                    " ".join(sorted(failing, key=lambda code: int(code[1:]))),
                    _short(record.facts.get("q1")),
                    bool(record.facts.get("asked")),
                    record.reason[:200],
                    *values,
                ]
            )
    head = ["model", "id", "task", "outcome", "status", "rules", "q1", "asked", "reason"]
    write_script(
        out / "index.js",
        "index",
        summary
        | {
            "rule_names": [[rule.code, rule.title, rule.question] for rule in RULES],
            "outcome_order": list(OUTCOMES),
            "columns": [*head, *_COLUMNS.values()],
            "rows": rows,
            "hesitation": _hesitation_ids(audit),
            "made_of": {model: model_card(audit.records[model]) for model in audit.models},
            "lag_edges_ms": curves.LAG_EDGES_MS,
            "lags": {m: _sum(_facts(audit, m, "lags")) for m in audit.models},
            "context": {m: curves.spread(_facts(audit, m, "context")) for m in audit.models},
        },
    )


def _facts(audit: Audit, model: str, name: str) -> list[list[int]]:
    return [found for r in audit.records[model] if (found := r.facts.get(name))]


def _sum(counts: list[list[int]]) -> list[int]:
    return [sum(column) for column in zip(*counts, strict=True)]


def _hesitation_ids(audit: Audit) -> list[str]:
    """Samples whose gap is judged, in manifest order."""
    judged = {
        record.sample_id
        for records in audit.records.values()
        for record in records
        if record.facts.get("hesitates")
    }
    return [s.sample_id for s in audit.samples if s.sample_id in judged]


def _short(value: Any) -> Any:
    return round(value, 3) if isinstance(value, float) else value
