"""What a check of a compiled sample says: rule, status, one sentence, evidence."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

Status = Literal["ok", "suspect", "fail"]
_RANK: dict[Status, int] = {"ok": 0, "suspect": 1, "fail": 2}


@dataclass(frozen=True)
class Finding:
    """The outcome of one rule.

    Attributes:
        rule: its name, see data/README.md.
        status: ``suspect`` is for a person to look at; it stops nothing.
        message: one sentence.
        evidence: the numbers behind it.
    """

    rule: str
    status: Status
    message: str
    evidence: dict[str, Any] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """The finding as it stands in work/checks/<id>.json."""
        return asdict(self)


def worst(findings: list[Finding]) -> Status:
    """The most serious status among the findings."""
    return max((finding.status for finding in findings), key=_RANK.__getitem__, default="ok")
