"""The audit rules, one module each; this is the table of them, and how they are all asked."""

from __future__ import annotations

from hfd.judge.rules import (
    a01_input_identity,
    a02_padding,
    a03_pacing,
    a04_clock,
    a05_dependency,
    a06_prefix_invariance,
    a07_offline_signature,
    a08_fixed_delay,
    a09_placement,
    a10_wav_rebuild,
    a11_voice,
    a12_context,
    a13_model_identity,
    a14_completeness,
    a15_transcript,
    a16_files_agree,
    a17_incremental,
)
from hfd.judge.rules.rule import Rule, SampleCase, SetCase
from hfd.judge.verdict import Verdict, combined, unknown

RULES: tuple[Rule, ...] = (
    a01_input_identity.RULE,
    a02_padding.RULE,
    a03_pacing.RULE,
    a04_clock.RULE,
    a05_dependency.RULE,
    a06_prefix_invariance.RULE,
    a07_offline_signature.RULE,
    a08_fixed_delay.RULE,
    a09_placement.RULE,
    a10_wav_rebuild.RULE,
    a11_voice.RULE,
    a12_context.RULE,
    a13_model_identity.RULE,
    a14_completeness.RULE,
    a15_transcript.RULE,
    a16_files_agree.RULE,
    a17_incremental.RULE,
)


def judge_sample(case: SampleCase) -> dict[str, Verdict]:
    """The answers of all rules that a single sample can answer, by code."""
    return {rule.code: rule.of_sample(case) for rule in RULES if rule.of_sample is not None}


def judge_model(case: SetCase) -> dict[str, Verdict]:
    """A model's answer to every rule, by code."""
    return {rule.code: _of_model(rule, case) for rule in RULES}


def _of_model(rule: Rule, case: SetCase) -> Verdict:
    if not case.delivered and rule.code != "A14":
        return unknown("no result yet")
    parts = [
        (record.sample_id, record.verdicts[rule.code])
        for record in case.delivered
        if rule.code in record.verdicts
    ]
    samples = combined(parts)
    return samples if rule.of_model is None else rule.of_model(case, samples)
