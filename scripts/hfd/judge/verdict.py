"""The answer of one audit rule: pass, fail or not_evidenced, with a reason and the evidence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

PASS = "pass"
FAIL = "fail"
NOT_EVIDENCED = "not_evidenced"


@dataclass(frozen=True)
class Verdict:
    """One rule's answer for a sample or a model.

    Attributes:
        status: ``pass``, ``fail`` or ``not_evidenced``; no evidence is never a pass.
        reason: one line a person understands.
        evidence: where to look: files and lines, counts, values.
    """

    status: str
    reason: str
    evidence: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {"status": self.status, "reason": self.reason, "evidence": self.evidence}


def passed(reason: str, **evidence: Any) -> Verdict:
    return Verdict(PASS, reason, evidence)


def failed(reason: str, **evidence: Any) -> Verdict:
    return Verdict(FAIL, reason, evidence)


def unknown(reason: str, **evidence: Any) -> Verdict:
    return Verdict(NOT_EVIDENCED, reason, evidence)


def combined(parts: Sequence[tuple[str, Verdict]]) -> Verdict:
    """A model's answer to a rule from its samples' answers, as (sample id, verdict)."""
    if not parts:
        return unknown("no result to judge")
    count = Counter(verdict.status for _, verdict in parts)
    status = next(s for s in (FAIL, NOT_EVIDENCED, PASS) if count[s])
    named = [(sample, verdict) for sample, verdict in parts if verdict.status == status]
    sample, first = named[0]
    reason = first.reason
    if status == PASS and len({verdict.reason for _, verdict in parts}) > 1:
        reason = f"all {len(parts)} samples, for example {sample}: {first.reason}"
    elif status != PASS and len(parts) > 1:
        reason = f"{count[status]} of {len(parts)} samples, first {sample}: {first.reason}"
    samples = [sample for sample, _ in named] if status != PASS else []
    return Verdict(status, reason, {"counts": dict(count), "samples": samples})


def merged(*verdicts: Verdict) -> Verdict:
    """One answer from several to the same rule: the worst status, and all that says so is told."""
    status = next(s for s in (FAIL, NOT_EVIDENCED, PASS) if any(v.status == s for v in verdicts))
    deciding = [verdict for verdict in verdicts if verdict.status == status]
    if status == PASS or len(deciding) == 1:
        return deciding[0]
    samples = (sample for verdict in deciding for sample in verdict.evidence.get("samples", ()))
    return Verdict(
        status,
        "; ".join(verdict.reason for verdict in deciding),
        {"samples": list(dict.fromkeys(samples)), "parts": [v.as_dict() for v in deciding]},
    )
