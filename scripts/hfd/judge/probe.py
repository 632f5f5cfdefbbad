"""A6, prefix invariance: a model that is online cannot know what comes after T.

The probe (scripts/prefix_probe.py) runs a sample three times: twice as it is, once with the sound
changed only after T. What the model says from the input before T must be the same in all three.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfd.files import read_json
from hfd.judge.trace import Trace
from hfd.judge.verdict import FAIL, PASS, Verdict, combined, failed, passed, unknown


@dataclass(frozen=True)
class Said:
    """One output: what it is, and when it came."""

    kind: str
    content: str
    t: float


def said_before(trace: Trace, end: float) -> list[Said]:
    """Outputs that depend only on input before `end` (media seconds), in order.

    On the arrival clock, where a server may say which input an output used or not, an output also
    counts only if it came before `end`.
    """
    due = {line["unit"]: line["due"] for _, line in trace.of("input")}
    real_time = trace.header["clock"] == "arrival"
    found = []
    for _, line in trace.of("text", "audio", "control"):
        after = due.get(line["input_seq"], 0.0) > end or (real_time and line["t"] > end)
        if not after:
            found.append(Said(line["kind"], _content(line), line["t"]))
    return found


def _content(line: dict[str, Any]) -> str:
    if line["kind"] == "text":
        return line["delta"]
    if line["kind"] == "audio":
        return hashlib.sha256(line["pcm"].encode()).hexdigest()[:16]
    return line["control"]


def compare(kept: Trace, again: Trace, changed: Trace, end: float) -> Verdict:
    """A6 for one sample, from three runs that share their input up to `end`."""
    runs = [[(s.kind, s.content) for s in said_before(t, end)] for t in (kept, again, changed)]
    first, second, third = runs
    evidence = {"T_s": round(end, 3), "outputs_before_T": len(first)}
    if not first and not third:
        return unknown("the model said nothing before T", **evidence)
    if first != second:
        return unknown("two equal runs differ before T: the model is not deterministic", **evidence)
    if first != third:
        at = next(
            (n for n, (a, b) in enumerate(zip(first, third, strict=False)) if a != b),
            min(len(first), len(third)),
        )
        return failed(
            f"output {at} before T = {end:.2f} s changes when only the input after T is changed",
            kept=_shown(first, at),
            changed=_shown(third, at),
            **evidence,
        )
    return passed(f"{len(first)} outputs before T are the same, whatever follows", **evidence)


def _shown(outputs: Sequence[tuple[str, str]], at: int) -> str | None:
    return " ".join(outputs[at])[:80] if at < len(outputs) else None


def overall(verdicts: Sequence[tuple[str, Verdict]]) -> Verdict:
    """A model's answer from its samples: one failure decides, one proof is a proof."""
    proofs = [pair for pair in verdicts if pair[1].status != "not_evidenced"]
    return combined(proofs or verdicts)


def probe_verdict(path: Path | None) -> Verdict:
    """The stored outcome of a probe, or not_evidenced where none was run."""
    if path is None or not path.is_file():
        return unknown("no probe was run: snakemake prefix_probe_<model> settles it")
    stored = read_json(path)
    make = {PASS: passed, FAIL: failed}.get(stored["status"], unknown)
    return make(stored["reason"], **stored["evidence"])
