"""A14: is every sample there once, with text and its own sound?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hfd.judge.rules.rule import Rule, SampleCase, SetCase, from_findings
from hfd.judge.verdict import Verdict, failed, merged, passed

if TYPE_CHECKING:
    from hfd.judge.sample import Record


def of_sample(case: SampleCase) -> Verdict:
    findings = [finding for finding in case.folder.findings if finding.rule == "A14"]
    if findings:
        return from_findings(findings)
    return passed("text, sound, trace and provenance are there")


def of_model(case: SetCase, samples: Verdict) -> Verdict:
    """Every manifest id once, no foreign folder, no sound used twice."""
    whole = _completeness(case.records, case.extra)
    parts = [whole] if case.doubles is None else [whole, case.doubles]
    return merged(*parts, samples) if case.delivered else merged(*parts)


def _completeness(records: Sequence[Record], extra: Sequence[str]) -> Verdict:
    count = Counter(record.status for record in records)
    gone = [r.sample_id for r in records if r.status in ("missing", "failed", "ineligible")]
    wrong = []
    if gone:
        named = ", ".join(
            f"{count[s]} {s}" for s in ("failed", "missing", "ineligible") if count[s]
        )
        wrong.append(failed(f"{named} of {len(records)}, first {gone[0]}", samples=gone))
    if extra:
        told = f"{len(extra)} folders are not in the manifest, first {extra[0]}"
        wrong.append(failed(told, samples=list(extra)))
    return merged(*wrong) if wrong else passed(f"{len(records)} samples, each once")


def duplicates(records: Sequence[Record]) -> dict[str, Verdict]:
    """By model: wavs of different input that are the same bytes, or one sound for two texts.

    Honest are the same sound with the same text at another time (a deterministic voice that says
    it twice), and the same wav where one model heard the same file twice. Inputs count as
    different unless the files themselves were hashed: what a folder states proves nothing.
    """
    same: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        if record.facts.get("sound_sha256"):
            same["wav", record.facts["wav_sha256"]].append(record)
            same["sound", record.facts["sound_sha256"]].append(record)
    found: dict[str, dict[str, list[Record]]] = defaultdict(dict)
    for (kind, _), group in same.items():
        texts = {record.facts["text"] for record in group}
        sources = {(r.model, r.facts["input_sha256"] or r.sample_id) for r in group}
        if len(sources) > 1 if kind == "wav" else len(texts) > 1:
            shown = " = ".join(f"{r.model}/{r.sample_id}".removeprefix("/") for r in group[:4])
            for record in group:
                found[record.model][shown] = group
    return {model: _repeated(model, groups) for model, groups in found.items()}


def _repeated(model: str, groups: dict[str, list[Record]]) -> Verdict:
    shown = sorted(groups)
    more = f" (and {len(shown) - 1} more)" if len(shown) > 1 else ""
    guilty = [r.sample_id for group in groups.values() for r in group if r.model == model]
    blind = any(not r.facts["input_sha256"] for group in groups.values() for r in group)
    hint = ", and the compiled videos are not here to tell whether they are one" if blind else ""
    return failed(
        f"the same sound more than once: {shown[0]}{more}{hint}",
        groups=shown,
        samples=sorted(set(guilty)),
    )


RULE = Rule(
    "A14",
    "Completeness",
    "Is every sample there once, with text and its own sound?",
    "every manifest id once, no foreign folder, text with sound, no sound used twice (a model may "
    "answer one and the same file twice alike; where the compiled files are not at hand to tell, a "
    "sound used twice fails)",
    of_sample,
    of_model,
)
