"""A11: is the voice of the declared origin?"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hfd.judge.findings import RESULT
from hfd.judge.folder import Folder
from hfd.judge.metrics import words
from hfd.judge.rules.rule import FEWEST, Rule, SampleCase, SetCase, over_set
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
    return _whole_frames(folder, declared, hop)


def _whole_frames(folder: Folder, declared: str, hop: int) -> Verdict:
    """Only the last chunk of a turn may hold less than whole frames of the codec."""
    said = folder.trace.of("audio", "control")
    odd, inner = [], 0
    for (number, line), following in zip(said, [*said[1:], None], strict=True):
        if line["kind"] != "audio":
            continue
        last = (
            following is None
            or following[1]["kind"] == "control"
            or following[1]["play_at"] > line["play_at"] + line["samples"]
        )
        inner += not last
        if line["samples"] % hop and not last:
            odd.append(number)
    if len(odd) > 0.5 * inner and len(odd) >= 2:
        return failed(
            f"{len(odd)} of {inner} chunks inside a turn are no multiple of the codec's {hop} "
            "samples: another voice made them",
            line=odd[0],
        )
    if odd:
        return unknown(f"{len(odd)} of {inner} chunks are no whole frames: ends of turns, or not")
    return passed(f"{declared}; chunks are whole codec frames of {hop} samples")


def of_model(case: SetCase, samples: Verdict) -> Verdict:
    """Text that always ends before sound begins, or a voice unlike the others."""
    sounding = [record for record in case.measured if record.facts.get("audio_times")]
    found = [verdict for rule in (_text_first, _odd_voices) if (verdict := rule(sounding))]
    return merged(*found, samples)


def _text_first(sounding: Sequence[Record]) -> Verdict | None:
    """Sound that waits for the text's end: it follows that end more closely than the beginning.

    A slow voice too begins after a short text is complete, but when it began to speak the text.
    """
    long = [
        record
        for record in sounding
        if len(record.facts["text_times"]) > 1
        and record.facts["text_times"][-1] - record.facts["text_times"][0] > 0.5
        and record.facts["voice_origin"] != "post_tts"
    ]
    waits = [r for r in long if r.facts["audio_times"][0] >= r.facts["text_times"][-1]]
    if len(long) < FEWEST or len(waits) < 0.9 * len(long):
        return None
    times = [(r.facts["text_times"], r.facts["audio_times"][0]) for r in waits]
    after_first = float(np.std([sound - text[0] for text, sound in times]))
    after_last = float(np.std([sound - text[-1] for text, sound in times]))
    told = f"in {len(waits)} of {len(long)} samples sound begins only when the text is complete"
    ids = [record.sample_id for record in waits]
    if after_last < 0.5 * after_first:
        return failed(f"{told}, soon after its end: post_tts, whatever is declared", samples=ids)
    return unknown(f"{told}: a slow voice, or one that waits for the text", samples=ids)


HONEST_RATE = 0.002
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
    odd, judged = [], 0
    for group in groups.values():
        if len(group) < FEWEST:
            continue
        judged += len(group)
        prints = np.array([record.facts["voice"] for record in group])
        centre = np.median(prints, axis=0)
        pitch = np.abs(prints[:, 0] - centre[0])
        spectrum = np.sqrt(((prints[:, 1:] - centre[1:]) ** 2).mean(axis=1))
        pitched = (pitch > _PITCH_SEMITONES) & (spectrum > _PITCHED_SPECTRUM_DB)
        far = pitched | (spectrum > _SPECTRUM_DB)
        odd += [record.sample_id for record, is_far in zip(group, far, strict=True) if is_far]
    return over_set(odd, judged, HONEST_RATE, "have a voice unlike the model's others")


RULE = Rule(
    "A11",
    "Voice",
    "Is the voice of the declared origin?",
    "origin as the contract demands; chunks are whole codec frames, but for the last of a turn "
    "(native talkers must declare the codec's hop, or nothing is evidenced); sound does not follow "
    "the text's end in all answers; no more samples in another voice than chance allows",
    of_sample,
    of_model,
)
