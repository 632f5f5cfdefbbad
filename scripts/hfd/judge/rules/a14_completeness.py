"""A14: is every sample there once, with text and its own sound?"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hfd.errors import LOST_AS
from hfd.judge.delivered import turns_of
from hfd.judge.findings import WAV
from hfd.judge.metrics import abrupt_end, words
from hfd.judge.rules.rule import Rule, SampleCase, SetCase, from_findings, over_set
from hfd.judge.sound import audible
from hfd.judge.spoken_words import word_error_rate, words_and_characters
from hfd.judge.verdict import Verdict, failed, merged, passed, unknown
from hfd.media_time import SAMPLE_RATE

if TYPE_CHECKING:
    from hfd.judge.sample import Record


_LOST = (*LOST_AS, "missing", "ineligible")
HONEST_RATE = 0.02
"""Honest samples with speech but without text: laughter, an accent the text leaves out."""


HONEST_CUT_RATE = 0.05
"""Honest answers that end, within 50 ms and without fading, just where the file does."""
_AT_END_S = 0.05
_LAST_WORDS = 6


def of_sample(case: SampleCase) -> Verdict:
    folder = case.folder
    findings = [finding for finding in folder.findings if finding.rule == "A14"]
    if findings:
        return from_findings(findings)
    if folder.track is None:
        return unknown("there is no readable trace")
    has_text = sum(words(folder.text)) > 0
    if (
        has_text
        and not audible(folder.track).any()
        and folder.result.value.get("voice_origin") != "none"
    ):
        if any(turn.cut for turn in turns_of(folder.trace, folder.chunks)):
            return unknown("there is text without sound, but a cut came before its sound")
        heard = "its sound cannot be heard" if folder.chunks else "no sound"
        return failed(f"{WAV}: there is text but {heard}")
    if case.speech and not has_text:
        return unknown("there is speech but no text")
    if breaks_off(case):
        last = " ".join(folder.text.split()[-_LAST_WORDS:])
        return unknown(
            f"the voice breaks off where the file ends; last words: {last}", cut_off=last
        )
    return passed("text, sound, trace and provenance are there")


def breaks_off(case: SampleCase) -> bool:
    """Whether speech stops at once where the media ends, without a cut or a word that it did."""
    folder = case.folder
    if folder.wav is None or not case.speech or folder.result.value.get("truncated"):
        return False
    media_s = folder.trace.header["media_samples"] / SAMPLE_RATE
    rate, loud = folder.wav.rate, np.flatnonzero(audible(folder.wav.pcm))
    if abs((int(loud[-1]) + 1) / rate - media_s) > _AT_END_S:
        return False
    turns = turns_of(folder.trace, folder.chunks)
    return not (turns and turns[-1].cut) and bool(abrupt_end(folder.wav.pcm, rate))


def of_model(case: SetCase, samples: Verdict) -> Verdict:
    """Every manifest id once, no foreign folder, no sound used twice, speech with its text."""
    parts = [_completeness(case)]
    if case.doubles is not None:
        parts.append(case.doubles)
    mute = [r.sample_id for r in case.measured if r.metrics.get("speech_s") and not r.facts["text"]]
    speaking = sum(bool(r.metrics.get("speech_s")) for r in case.measured)
    textless = over_set(mute, speaking, HONEST_RATE, "have speech without text")
    if textless is not None:
        parts.append(textless)
    cut = [r.sample_id for r in case.measured if "cut_off" in r.verdicts["A14"].evidence]
    broken = over_set(cut, speaking, HONEST_CUT_RATE, "break off where the file ends")
    if broken is not None:
        parts.append(broken)
    parts += _history(case.records)
    return merged(*parts, samples) if case.delivered else merged(*parts)


def _history(records: Sequence[Record]) -> list[Verdict]:
    """Silence that stands beside a recorded error."""
    hidden = [r.sample_id for r in records if r.status == "no_response" and r.facts.get("error")]
    if not hidden:
        return []
    told = f"{len(hidden)} silent samples have a recorded error, first {hidden[0]}"
    return [unknown(f"{told}: silence, or a failure", samples=hidden)]


def _attempts(records: Sequence[Record]) -> str:
    """Samples that were not right at once, for a person to look at; servers do fail."""
    again = [r for r in records if r.facts.get("attempt", 1) > 1]
    if not again:
        return ""
    most = max(again, key=lambda record: record.facts["attempt"])
    return (
        f"; {len(again)} needed more than one attempt, "
        f"{most.sample_id} most ({most.facts['attempt']})"
    )


def _completeness(case: SetCase) -> Verdict:
    records = case.records
    count = Counter(record.status for record in records)
    open_ = [r.sample_id for r in records if r.facts.get("not_judged")]
    gone = [r.sample_id for r in records if r.status in _LOST and r.sample_id not in open_]
    count["ineligible"] -= len(open_)
    parts = []
    if gone:
        named = ", ".join(f"{count[s]} {s.replace('_', ' ')}" for s in _LOST if count[s])
        parts.append(failed(f"{named} of {len(records)}, first {gone[0]}", samples=gone))
    if case.extra:
        told = f"{len(case.extra)} folders are not in the manifest, first {case.extra[0]}"
        parts.append(failed(told, samples=list(case.extra)))
    if open_:
        parts.append(unknown(f"{len(open_)} samples could not be judged, first {open_[0]}"))
    if not case.has_manifest:
        parts.append(unknown(f"no manifest says which samples are expected{_attempts(records)}"))
    return (
        merged(*parts)
        if parts
        else passed(f"{len(records)} samples, each once{_attempts(records)}")
    )


def duplicates(records: Sequence[Record]) -> dict[str, Verdict]:
    """By model: runs whose lines have the same microseconds, or one sound for two texts.

    Honest are the same sound with the same words (a deterministic voice that says it twice), also
    where a cut left only the beginning that two answers share. Two runs of one file are honest too:
    their times differ by microseconds.
    """
    same: dict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in records:
        if record.facts.get("times"):
            same["times", record.facts["times"]].append(record)
        if record.facts.get("sound_sha256") and not record.facts["cut"]:
            same["sound", record.facts["sound_sha256"]].append(record)
    found: dict[str, dict[str, list[Record]]] = defaultdict(dict)
    for (kind, _), group in same.items():
        if len(group) > 1 and (kind == "times" or _other_words(group)):
            shown = " = ".join(f"{r.model}/{r.sample_id}".removeprefix("/") for r in group[:4])
            for record in group:
                found[record.model][f"{shown} ({_WHAT[kind]})"] = group
    return {model: _repeated(model, groups) for model, groups in found.items()}


_WHAT = {"times": "every time the same to the microsecond", "sound": "one sound for other words"}


def _other_words(group: Sequence[Record]) -> bool:
    """Whether one of the texts has mostly other words than the first; spelling does not count."""
    first, *others = [words_and_characters(record.facts["text"]) for record in group]
    return any(word_error_rate(first, other) > 0.5 for other in others if other != first)


def _repeated(model: str, groups: dict[str, list[Record]]) -> Verdict:
    shown = sorted(groups)
    more = f" (and {len(shown) - 1} more)" if len(shown) > 1 else ""
    guilty = [r.sample_id for group in groups.values() for r in group if r.model == model]
    return failed(
        f"one result more than once: {shown[0]}{more}", groups=shown, samples=sorted(set(guilty))
    )


RULE = Rule(
    "A14",
    "Completeness",
    "Is every sample there once, with text and its own sound?",
    "every manifest id once, no foreign folder, text with sound that can be heard, no result used "
    "twice (the same microseconds, or one sound for other words), no more speech without text than "
    "chance allows",
    of_sample,
    of_model,
)
