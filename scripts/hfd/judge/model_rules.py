"""A model's answer to every rule: the worst of its samples' answers and of the set's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hfd.data.manifest import Sample
from hfd.judge import set_rules
from hfd.judge.probe import Probes
from hfd.judge.sample import Record
from hfd.judge.verdict import FAIL, PASS, RULES, Verdict, combined, merged, passed, unknown


def judge_model(
    records: Sequence[Record],
    extra: Sequence[str],
    doubles: Verdict | None,
    probes: Probes,
) -> dict[str, Verdict]:
    """Answer all rules for one model.

    Args:
        records: one for each expected sample.
        extra: result folders that nobody asked for.
        doubles: what `set_rules.duplicates` found for this model.
        probes: what running the model again found (A6, A12).
    """
    delivered = [record for record in records if record.verdicts]
    measured = [record for record in delivered if record.facts.get("clock")]
    whole = set_rules.completeness(records, extra)
    if doubles is not None:
        whole = merged(whole, doubles)
    if not delivered:
        return {rule.code: unknown("no result yet") for rule in RULES} | {"A14": whole}
    answers = {
        rule.code: combined(
            [(r.sample_id, r.verdicts[rule.code]) for r in delivered if rule.code in r.verdicts]
        )
        for rule in RULES
    }
    answers["A6"] = probes.prefix
    answers["A12"] = _context(answers["A12"], probes.needle, measured)
    answers["A7"] = set_rules.offline_signature(measured)
    answers["A8"] = set_rules.fixed_delay(measured)
    for code, over_set in (
        ("A11", set_rules.voices(measured)),
        ("A13", set_rules.one_model(measured)),
        ("A14", whole),
    ):
        if over_set is not None:
            answers[code] = merged(over_set, answers[code])
    return answers


def _context(reported: Verdict, needle: Verdict, measured: Sequence[Record]) -> Verdict:
    """A12: what the traces report, or what the needle probe proves where they report nothing."""
    proven = needle.status == PASS and not any(r.facts["truncated"] for r in measured)
    if reported.status == FAIL or (reported.status == PASS and not proven):
        return reported
    if reported.status == PASS:
        return passed(f"{reported.reason}; {needle.reason}", **reported.evidence)
    return needle if proven else merged(reported, unknown(needle.reason, **needle.evidence))


def foreign_folders(results: Path, samples: Sequence[Sample]) -> list[str]:
    """Folders in a model's results that no manifest row asked for."""
    if not results.is_dir():
        return []
    known = {sample.sample_id for sample in samples}
    found = (path.name for path in results.iterdir() if path.is_dir())
    return sorted(name for name in found if name not in known and not name.startswith("."))
