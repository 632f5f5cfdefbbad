"""Results of a worker that ran samples side by side: what they said counts, when they did not.

Their times hold the wait for the card that others used meanwhile. They are left out wherever times
are shown or compared; turns rest on times, so such a model is compared with no other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from hfd.judge.findings import PROVENANCE, Finding

if TYPE_CHECKING:
    from hfd.judge.documents import Document
    from hfd.judge.folder import Folder
    from hfd.judge.sample import Record
    from hfd.judge.trace import Trace

TIMED = frozenset(
    {
        "h8_yield_s",
        "h9_response_s",
        "h9_settled_s",
        "h12_first_text_s",
        "h13_first_audio_s",
        "h14_text_to_audio_s",
        "h15_underrun_s",
        "h16_rtf_compute",
        "h16_rtf_stream",
        "fdb_latency_s",
    }
)
"""Metrics that are a time of the model's own, or nothing."""
_EMPTY: dict[str, Any] = {
    "lag_s": [],
    "listening_s": [],
    "growth": None,
    "buffer_s": [],
    "unit_to_text_s": None,
    "unit_to_audio_s": None,
}


def sessions_of(folder: Folder) -> int:
    """How many samples ran side by side, by whichever file says most; 1: none beside another."""
    return max(_stated(folder.trace, folder.result, folder.provenance).values())


def check_sessions(trace: Trace, result: Document, provenance: Document) -> list[Finding]:
    """All files must tell the same number: none may call shared times its own."""
    stated = _stated(trace, result, provenance)
    if len(set(stated.values())) == 1:
        return []
    told = ", ".join(f"{number} by {name}" for name, number in stated.items())
    return [Finding("A13", PROVENANCE, f"samples side by side: {told}")]


def most_sessions(records: Sequence[Record]) -> int:
    """The most samples side by side in any of a model's results."""
    return max((record.facts.get("sessions", 1) for record in records), default=1)


def without_times(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """Metrics of a sample whose times are shared."""
    return {
        key: None if key in TIMED or key.startswith("onset_") else value
        for key, value in metrics.items()
    }


def without_other_times(under: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Such a sample's metrics under other definitions, by definition: those that are no times."""
    return {
        name: {key: value for key, value in other.items() if key not in TIMED}
        for name, other in under.items()
    }


def without_timings(measures: Mapping[str, Any]) -> dict[str, Any]:
    """`hfd.judge.measures.trace_measures` of a sample whose times are shared."""
    return {**measures, **_EMPTY}


def _stated(trace: Trace, result: Document, provenance: Document) -> dict[str, int]:
    given = {
        "the trace": trace.header,
        "result.json": result.value,
        "the fingerprint": provenance.value.get("recipe", {}),
        "provenance.json": provenance.value.get("shared", {}),
    }
    numbers = {name: found.get("sessions", 1) for name, found in given.items()}
    return {name: n if isinstance(n, int) else 1 for name, n in numbers.items()}
