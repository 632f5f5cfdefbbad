"""What became of a sample: the one class that decides its colour and place in the report."""

from __future__ import annotations

from hfd.errors import LOST_AS
from hfd.judge.sample import Record

UNUSABLE = (*LOST_AS, "missing", "ineligible")
STATUSES = ("ok", "no_response", *UNUSABLE)
OUTCOMES = (
    *LOST_AS,
    "missing",
    "ineligible",
    "truncated",
    "prefix_barge_in",
    "gap_takeover",
    "correction_barge_in",
    "no_response",
    "late",
    "ok",
)
"""What became of a sample, worst first."""


def outcome(record: Record) -> str:
    """The class that decides a sample's colour in the report."""
    if record.status in UNUSABLE:
        return record.status
    if record.facts.get("truncated"):
        return "truncated"
    values = record.metrics
    for key, name in (
        ("h2_prefix_barge_in", "prefix_barge_in"),
        ("h1_gap_takeover", "gap_takeover"),
        ("h3_correction_barge_in", "correction_barge_in"),
    ):
        if values.get(key):
            return name
    if values.get("h11_late"):
        return "late"
    responded = values.get("h11_responded", record.status == "ok")
    return "ok" if responded else "no_response"
