"""Rules that only running the model again can answer, from three runs of one sample.

Each probe (hfd.probes.changed_sound) runs a sample twice as it is and once with another sound:

- *prefix* (A6): other only after T. A model that is online cannot know what comes after T, so
  what it says from the input before T must be the same in all three.
- *needle* (A12): other only before T, early in the file. Where the answer, late in the file, is
  then another, the context still reached back to the change: it was not cropped in between.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfd.data.manifest import HESITATION, Sample
from hfd.errors import HfdError
from hfd.files import read_json
from hfd.judge.trace import Trace
from hfd.judge.verdict import (
    FAIL,
    NOT_EVIDENCED,
    PASS,
    Verdict,
    combined,
    failed,
    passed,
    unknown,
)

Said = list[tuple[str, str]]
"""Outputs in order, as (kind, content)."""
NOT_DETERMINISTIC = "two equal runs differ{}: the model is not deterministic"
SHORTEST_REACH_S = 2.0
"""Less context than this says nothing of cropping."""


def said_by_input(trace: Trace) -> dict[float, Said]:
    """Outputs by the moment (media seconds) at which the input that they depend on exists."""
    due = {line["unit"]: line["due"] for _, line in trace.of("input")}
    found: dict[float, Said] = defaultdict(list)
    for _, line in trace.of("text", "audio", "control"):
        found[due.get(line["input_seq"], 0.0)].append((line["kind"], _content(line)))
    return dict(found)


def said_before(trace: Trace, end: float) -> Said:
    """Outputs that depend only on input before `end` (media seconds), in order.

    On the arrival clock, where a server may say which input an output used or not, an output also
    counts only if it came before `end`.
    """
    due = {line["unit"]: line["due"] for _, line in trace.of("input")}
    real_time = trace.header["clock"] == "arrival"
    return [
        (line["kind"], _content(line))
        for _, line in trace.of("text", "audio", "control")
        if due.get(line["input_seq"], 0.0) <= end and not (real_time and line["t"] > end)
    ]


def _content(line: dict[str, Any]) -> str:
    if line["kind"] == "text":
        return line["delta"]
    if line["kind"] == "audio":
        return hashlib.sha256(line["pcm"].encode()).hexdigest()[:16]
    return line["control"]


def prefix_invariance(kept: Trace, again: Trace, changed: Trace, end: float) -> Verdict:
    """A6 for one sample, from three runs that share their input up to `end`."""
    first, second, third = (said_before(trace, end) for trace in (kept, again, changed))
    evidence = {"T_s": round(end, 3), "outputs_before_T": len(first)}
    if not first and not third:
        return unknown("the model said nothing before T", **evidence)
    if first != second:
        return unknown(NOT_DETERMINISTIC.format(" before T"), **evidence)
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


def _shown(outputs: Said, at: int) -> str | None:
    return " ".join(outputs[at])[:80] if at < len(outputs) else None


def needle_reach(
    kept: Trace, again: Trace, changed: Trace, end: float, question_end: float
) -> Verdict:
    """A12 for one sample, from three runs that share their input from `end` on.

    What the model says in between may carry the change on, so the context's proven reach counts
    from the last difference before the answer.
    """
    first, second, third = (said_by_input(trace) for trace in (kept, again, changed))
    evidence: dict[str, Any] = {"T_s": round(end, 3), "question_end_s": round(question_end, 3)}
    if not any(_speaks(run, question_end) for run in (first, third)):
        return unknown("the model said nothing after the last question", **evidence)
    if first != second:
        return unknown(NOT_DETERMINISTIC.format(""), **evidence)
    differ = sorted(at for at in first.keys() | third.keys() if first.get(at) != third.get(at))
    answer = next((at for at in differ if at > question_end), None)
    if answer is None:
        return unknown(
            f"other sound in the first {end:.1f} s changes no word of the answer, heard or not",
            **evidence,
        )
    carried = max([end, *(at for at in differ if at <= question_end)])
    reach = answer - carried
    evidence |= {"answer_s": round(answer, 3), "reach_s": round(reach, 3)}
    if reach < SHORTEST_REACH_S:
        return unknown(
            f"the change of the first {end:.1f} s was last seen {reach:.1f} s before the answer: "
            "too near to tell a cropped context",
            **evidence,
        )
    return passed(
        f"the sound before {carried:.1f} s still changes what is said at {answer:.1f} s: "
        f"the context reaches back {reach:.1f} s or more",
        **evidence,
    )


def _speaks(run: dict[float, Said], after: float) -> bool:
    return any(kind != "control" for at, said in run.items() if at > after for kind, _ in said)


def overall(verdicts: Sequence[tuple[str, Verdict]]) -> Verdict:
    """A model's answer from its samples: one failure decides, one proof is a proof."""
    proofs = [pair for pair in verdicts if pair[1].status != NOT_EVIDENCED]
    answer = combined(proofs or verdicts)
    if answer.status != PASS:
        return answer
    sample, first = proofs[0]
    told = f"{len(proofs)} of {len(verdicts)} samples, for example {sample}: {first.reason}"
    return passed(told, **answer.evidence)


def tails_digest(tails: Mapping[str, str]) -> str:
    """One hash over the trace tails of all delivered samples, by id."""
    lines = "".join(f"{sample} {tail}\n" for sample, tail in sorted(tails.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def read_tails(results: Path) -> dict[str, str]:
    """The trace tail of every result in a folder, by sample."""
    found = {}
    for path in sorted(results.glob("*/provenance.json")):
        found[path.parent.name] = read_json(path)["trace"]["tail"]
    return found


def rerun_ids(samples: Sequence[Sample], tails: Mapping[str, str]) -> list[str]:
    """The results that reruns are drawn from: of hesitation samples if there are two, else all."""
    known = [sample for sample in samples if sample.sample_id in tails]
    hesitation = [sample for sample in known if sample.task == HESITATION]
    return [sample.sample_id for sample in (hesitation if len(hesitation) > 1 else known)]


def drawn(ids: Sequence[str], digest: str, nonce: str, count: int) -> list[str]:
    """The samples that are probed: who delivers cannot choose them, who audits may add a nonce."""

    def key(sample: str) -> str:
        return hashlib.sha256(f"{digest}:{nonce}:{sample}".encode()).hexdigest()

    return sorted(ids, key=key)[:count]


def rerun_of(delivered: Trace, kept: Trace, again: Trace | None, same_place: bool) -> Verdict:
    """Whether the probe's unchanged run says what was delivered.

    Args:
        delivered: the trace of the delivered result.
        kept, again: two runs of the same file in the probe, the second where there is one.
        same_place: whether code, packages and device are those of the delivered run.
    """
    first, second = _said(delivered), _said(kept)
    if first == second:
        return passed("the rerun says what was delivered")
    same = sum(a == b for a, b in zip(first, second, strict=False))
    told = f"the rerun says otherwise: {same} of {len(first)} outputs are those delivered"
    if again is None or second != _said(again):
        return unknown(f"{told}; the model is not deterministic")
    if not same_place:
        return unknown(f"{told}; other code, packages or device made it")
    return failed(f"{told}, and the model is deterministic")


def _said(trace: Trace) -> Said:
    return [(line["kind"], _content(line)) for _, line in trace.of("text", "audio", "control")]


@dataclass(frozen=True)
class Probes:
    """What the probes of one model found: the answers of prefix (A6) and needle (A12)."""

    prefix: Verdict
    needle: Verdict


def read_probes(
    folder: Path | None, model: str, tails: Mapping[str, str] | None = None, nonce: str = ""
) -> Probes:
    """The stored outcomes, ``<folder>/<kind>/<model>.json``; not_evidenced where none was run.

    Args:
        folder: of the probes, or None.
        model: its name.
        tails: trace tails of the results that are judged, by sample; a probe of other results is
            no evidence for these.
        nonce: what the auditor had asked the samples to be drawn with.
    """
    return Probes(*(_stored(folder, kind, model, tails, nonce) for kind in ("prefix", "needle")))


def _stored(
    folder: Path | None, kind: str, model: str, tails: Mapping[str, str] | None, nonce: str
) -> Verdict:
    path = folder / kind / f"{model}.json" if folder else None
    if path is None or not path.is_file():
        return unknown(f"no probe was run: snakemake {kind}_probe_<model> may settle it")
    try:
        stored = read_json(path)
        problem = None
        if tails is not None:
            problem = unbound(stored.get("bound"), tails, nonce, list(tails))
        make = {PASS: passed, FAIL: failed}.get(stored["status"], unknown)
        answer = make(stored["reason"], **stored["evidence"])
    except (HfdError, AttributeError, KeyError, TypeError) as error:
        return unknown(f"{path.name} is no probe ({error})")
    return unknown(f"{problem}: run it again") if problem else answer


def unbound(bound: Any, tails: Mapping[str, str], nonce: str, whole: Sequence[str]) -> str | None:
    """Why a probe says nothing of these results, or None.

    Args:
        bound: what its file says of the results that it belongs to.
        tails: trace tails of the results that are judged, by sample.
        nonce: what the auditor had asked the samples to be drawn with.
        whole: the results that its samples are to be drawn from.
    """
    if not isinstance(bound, dict):
        return "the probe names no results that it belongs to"
    digest = tails_digest(tails)
    if bound["tails_sha256"] != digest:
        return "the probe belongs to other results than these"
    if bound["nonce"] != nonce:
        return "the probe's samples were drawn with another nonce"
    if bound["samples"] != drawn(bound["from"], digest, nonce, len(bound["samples"])):
        return "the probe's samples were not drawn from the results' hash"
    if not set(bound["from"]) <= set(whole) or len(bound["from"]) < 0.5 * len(whole):
        return "the probe's samples were drawn from a part of the results"
    return None
