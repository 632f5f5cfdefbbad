"""A6: does input after T leave the outputs before T as they were? Only a rerun can tell."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hfd.judge.metrics import content_words
from hfd.judge.reference import Reference
from hfd.judge.rules.rule import Rule, SampleCase, SetCase, over_set
from hfd.judge.verdict import FAIL, Verdict, merged, passed, unknown

if TYPE_CHECKING:
    from hfd.judge.sample import Record

HONEST_RATE = 0.1
"""A model that guesses the question may say one of its words before it is asked..."""
PER_WORDS = 8
"""...in each so many words: who says much says some of them by chance."""


def of_sample(case: SampleCase) -> Verdict:
    """Words of the correction alone that were written before it began: for a person to look at."""
    if case.reference is None or case.folder.track is None:
        return unknown("the user's words are not here to compare with")
    early = content_words(
        "".join(
            line["delta"]
            for _, line in case.folder.trace.of("text")
            if line["t"] < _correction_start(case.reference)
        )
    )
    asked = _only_in_correction(case.reference)
    foreseen = sorted(early & asked)
    told = {"early": len(early), "asked": sorted(asked)}
    if foreseen:
        shown = f"words of the correction are said before it began: {', '.join(foreseen[:5])}"
        return unknown(shown, foreseen=foreseen, **told)
    return passed("no word of the correction is said before it begins", **told)


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
    judged = [r for r in case.delivered if _evidence(r).get("asked")]
    foreseen = [r.sample_id for r in judged if "foreseen" in _evidence(r)]
    what = "say words of the correction before it began"
    named = over_set(foreseen, len(judged), honest_rates(judged, case.measured), what)
    if named is None:
        return probe
    if named.status == FAIL:
        return merged(probe, named)
    return replace(probe, reason=f"{probe.reason}; {named.reason}")


def honest_rates(judged: Sequence[Record], everyone: Sequence[Record]) -> list[float]:
    """For each sample, the chance that an honest model says a word of its correction too early.

    It grows with how much was said, and with how often the model says such words where nobody will
    ask with them: in the samples whose corrections have none of these words.
    """
    texts = [(content_words(r.facts["text"]), _asked(r)) for r in everyone]
    usual = {words: _share(words, texts) for words in {_asked(r) for r in judged}}
    rates = []
    for record in judged:
        handfuls = math.ceil(_evidence(record)["early"] / PER_WORDS)
        never = (1 - HONEST_RATE) ** handfuls * (1 - usual[_asked(record)])
        rates.append(1 - never if handfuls else 0.0)
    return rates


def _share(words: frozenset[str], texts: Sequence[tuple[set[str], frozenset[str]]]) -> float:
    """Share of the texts that hold one of the words, of those that nobody asked with them."""
    others = [bool(words & said) for said, asked in texts if not words & asked]
    return sum(others) / len(others) if others else 0.0


def _asked(record: Record) -> frozenset[str]:
    return frozenset(_evidence(record).get("asked", ()))


def _evidence(record: Record) -> dict[str, Any]:
    return record.verdicts["A6"].evidence if "A6" in record.verdicts else {}


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
