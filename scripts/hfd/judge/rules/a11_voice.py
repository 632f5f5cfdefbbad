"""A11: is the voice of the declared origin?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hfd.judge.findings import RESULT
from hfd.judge.metrics import words
from hfd.judge.rules.rule import FEWEST, Rule, SampleCase, SetCase
from hfd.judge.verdict import Verdict, failed, merged, passed, unknown

if TYPE_CHECKING:
    from hfd.judge.sample import Record


def of_sample(case: SampleCase) -> Verdict:
    folder, policy = case.folder, case.policy
    declared = folder.result.value.get("voice_origin")
    if declared is None:
        return unknown(f"{RESULT} does not say where the voice comes from")
    if policy.voice_origin is not None and declared != policy.voice_origin:
        return failed(f"voice is {declared}, the model's contract demands {policy.voice_origin}")
    if folder.track is None:
        return unknown("there is no readable trace")
    audio = folder.trace.of("audio")
    if not audio:
        return passed(f"{declared}; this sample has no sound")
    hop = folder.provenance.value.get("contract", {}).get("codec_hop_samples")
    if not hop:
        if declared == "streaming_tts":
            return passed("streaming_tts, as declared")
        return unknown(f"{declared} is declared, but no codec hop to hold its chunks against")
    for (number, line), following in zip(audio, [*audio[1:], None], strict=True):
        turn_ends = following is None or following[1]["play_at"] > line["play_at"] + line["samples"]
        if line["samples"] % hop and not turn_ends:
            return failed(
                f"a chunk of {line['samples']} samples is no multiple of the codec's {hop}: "
                "another voice made it",
                line=number,
            )
    return passed(f"{declared}; chunks are whole codec frames of {hop} samples")


def of_model(case: SetCase, samples: Verdict) -> Verdict:
    """Text that always ends before sound begins, or a voice unlike the others."""
    sounding = [record for record in case.measured if record.facts.get("audio_times")]
    found = [verdict for rule in (_text_first, _odd_voices) if (verdict := rule(sounding))]
    return merged(*found, samples)


def _text_first(sounding: Sequence[Record]) -> Verdict | None:
    """Sound that begins only when the text is complete, in most samples with some text."""
    long = [
        record
        for record in sounding
        if len(record.facts["text_times"]) > 1
        and record.facts["text_times"][-1] - record.facts["text_times"][0] > 0.5
    ]
    waits = [
        record
        for record in long
        if record.facts["audio_times"][0] >= record.facts["text_times"][-1]
        and record.facts["voice_origin"] != "post_tts"
    ]
    if len(long) >= FEWEST and len(waits) >= 0.9 * len(long):
        return failed(
            f"in {len(waits)} of {len(long)} samples sound begins only when the text is complete: "
            "post_tts, whatever is declared",
            samples=[record.sample_id for record in waits],
        )
    return None


_PITCH_SEMITONES = 6.0
_SPECTRUM_DB = 10.0
_PITCHED_SPECTRUM_DB = 6.0
"""Another voice: a spectrum this far, or 6 dB with another pitch (pitch alone may be an
octave error). One expressive reader strays up to 6.6 dB from her own median (docs/audit.md)."""


def _odd_voices(records: Sequence[Record]) -> Verdict | None:
    """Samples whose pitch and spectrum lie far from the model's others in the same script."""
    groups: dict[bool, list[Record]] = defaultdict(list)
    for record in records:
        if record.facts.get("voice"):
            latin, han = words(record.facts["text"])
            groups[han > latin].append(record)
    odd = []
    for group in groups.values():
        if len(group) < FEWEST:
            continue
        prints = np.array([record.facts["voice"] for record in group])
        centre = np.median(prints, axis=0)
        pitch = np.abs(prints[:, 0] - centre[0])
        spectrum = np.sqrt(((prints[:, 1:] - centre[1:]) ** 2).mean(axis=1))
        pitched = (pitch > _PITCH_SEMITONES) & (spectrum > _PITCHED_SPECTRUM_DB)
        far = pitched | (spectrum > _SPECTRUM_DB)
        odd += [record.sample_id for record, is_far in zip(group, far, strict=True) if is_far]
    if odd:
        return failed(
            f"the voice of {len(odd)} samples is unlike the model's others, first {odd[0]}",
            samples=odd,
        )
    return None


RULE = Rule(
    "A11",
    "Voice",
    "Is the voice of the declared origin?",
    "origin as the contract demands; chunks are whole codec frames (native talkers must declare "
    "the codec's hop, or nothing is evidenced); text does not always end before sound begins; no "
    "sample in a clearly different voice",
    of_sample,
    of_model,
)
