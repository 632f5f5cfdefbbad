"""A model's answer to every rule: the worst of its samples' answers and of the set's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hfd.data.manifest import Sample
from hfd.judge import set_rules
from hfd.judge.sample import Record
from hfd.judge.verdict import RULES, Verdict, combined, merged, unknown


def judge_model(
    records: Sequence[Record],
    extra: Sequence[str],
    doubles: Verdict | None,
    probe: Verdict,
) -> dict[str, Verdict]:
    """Answer all rules for one model.

    Args:
        records: one for each expected sample.
        extra: result folders that nobody asked for.
        doubles: what `set_rules.duplicates` found for this model.
        probe: the answer of the prefix probe (A6).
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
    answers["A6"] = probe
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


def foreign_folders(results: Path, samples: Sequence[Sample]) -> list[str]:
    """Folders in a model's results that no manifest row asked for."""
    if not results.is_dir():
        return []
    known = {sample.sample_id for sample in samples}
    found = (path.name for path in results.iterdir() if path.is_dir())
    return sorted(name for name in found if name not in known and not name.startswith("."))
