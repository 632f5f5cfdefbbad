"""A6: does input after T leave the outputs before T as they were? Only a rerun can tell."""

from __future__ import annotations

from dataclasses import replace

from hfd.judge.metrics import content_words
from hfd.judge.reference import Reference
from hfd.judge.rules.rule import Rule, SampleCase, SetCase, over_set
from hfd.judge.verdict import FAIL, PASS, Verdict, merged, passed, unknown

HONEST_RATE = 0.1
"""A model that guesses the question may say one of its words before it is asked."""


def of_sample(case: SampleCase) -> Verdict:
    """Words of the correction alone that were written before it began: for a person to look at."""
    if case.reference is None or case.folder.track is None:
        return unknown("the user's words are not here to compare with")
    early = "".join(
        line["delta"]
        for _, line in case.folder.trace.of("text")
        if line["t"] < _correction_start(case.reference)
    )
    foreseen = sorted(content_words(early) & _only_in_correction(case.reference))
    if foreseen:
        told = f"words of the correction are said before it began: {', '.join(foreseen[:5])}"
        return unknown(told, foreseen=foreseen)
    return passed("no word of the correction is said before it begins")


def _correction_start(reference: Reference) -> float:
    question = reference.question
    return question.correction.start if question and question.correction else 0.0


def _only_in_correction(reference: Reference) -> set[str]:
    adapter = reference.adapter
    if adapter is None or adapter.first is None or adapter.second is None:
        return set()
    first, second = (
        content_words(f"{event.text or ''} {event.spoken_text or ''}")
        for event in (adapter.first, adapter.second)
    )
    return second - first


def of_model(case: SetCase, samples: Verdict) -> Verdict:
    """What the probe found; and whether more samples than chance allows know what will be asked."""
    probe = case.probes.prefix
    answers = [(r.sample_id, r.verdicts["A6"]) for r in case.delivered if "A6" in r.verdicts]
    foreseen = [name for name, verdict in answers if "foreseen" in verdict.evidence]
    judged = len(foreseen) + sum(verdict.status == PASS for _, verdict in answers)
    named = over_set(foreseen, judged, HONEST_RATE, "say words of the correction before it began")
    if named is None:
        return probe
    if named.status == FAIL:
        return merged(probe, named)
    return replace(probe, reason=f"{probe.reason}; {named.reason}")


RULE = Rule(
    "A6",
    "Prefix invariance",
    "Does input after T leave the outputs before T as they were?",
    "`snakemake prefix_probe_<model>`: samples drawn from a hash of these results (and the "
    "auditor's nonce), run again with input changed only after T, say the same before T, and the "
    "unchanged run says what was delivered; no more samples than chance allows say words of the "
    "correction before it begins",
    of_sample,
    of_model,
)
