"""Metrics H1-H18 and H22 of one sample: pure functions on intervals and arrivals (docs/metrics.md).

All times are media seconds. Nothing is clamped: an answer before the question's end has a
negative latency, and a value that is not defined is None, never 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hfd.judge.definitions import STATED, Definition
from hfd.judge.intervals import Interval, merged, overlap

FDB_USER_PAUSE_S = 0.6
"""Full-Duplex-Bench 1.5 joins the user's speech over pauses up to this long."""
YIELD_S = 2.0
"""A speaker who has not stopped this long after the user began again did not yield."""
HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*|\d+")


@dataclass(frozen=True)
class Question:
    """What the user says, in media seconds.

    Attributes:
        q1: end of the last question.
        prefix: the unfinished first question, or None where the sample has none.
        correction: the corrected question, or None.
    """

    q1: float
    prefix: Interval | None = None
    correction: Interval | None = None

    @property
    def gap(self) -> Interval | None:
        """The hesitation: from the end of the prefix to the start of the correction."""
        if self.prefix is None or self.correction is None:
            return None
        return Interval(self.prefix.end, self.correction.start)


@dataclass(frozen=True)
class Arrival:
    """An audio chunk: arrived at `t`, `samples` long, queued to play at `play_at` seconds."""

    t: float
    samples: int
    play_at: float


@dataclass(frozen=True)
class Answer:
    """What the model did, in media seconds.

    Attributes:
        segments: speech in the saved wav.
        texts: (time, delta) of every text delta.
        audio: every audio chunk.
        rate: samples per second of the wav.
        media_s: length of the file.
        compute_s: measured compute of the whole sample, None where it could not be measured.
    """

    segments: Sequence[Interval]
    texts: Sequence[tuple[float, str]]
    audio: Sequence[Arrival]
    rate: int
    media_s: float
    compute_s: float | None = None


def words(text: str) -> tuple[int, int]:
    """(words outside Han script, Han characters) in a text."""
    return len(_WORD.findall(HAN.sub(" ", text))), len(HAN.findall(text))


def segment_texts(segments: Sequence[Interval], texts: Sequence[tuple[float, str]]) -> list[str]:
    """The text that belongs to each segment: deltas that came before the segment ended."""
    parts = ["" for _ in segments]
    for t, delta in texts:
        at = next((k for k, part in enumerate(segments) if part.end > t), len(segments) - 1)
        if segments:
            parts[at] += delta
    return parts


def turns(segments: Sequence[Interval], by: Definition = STATED) -> list[Interval]:
    """The model's turns: a hole of up to 0.5 s in its speech begins no new one."""
    return merged(segments, by.pause_s)


def takeovers(answer: Answer, by: Definition = STATED) -> list[Interval]:
    """Turns that take the floor: at least 1.0 s, or more than 3 words (6 Han characters)."""
    parts = turns(answer.segments, by)
    texts = segment_texts(parts, answer.texts)
    return [
        part
        for part, text in zip(parts, texts, strict=True)
        if part.length >= by.turn_s or _is_turn_by_words(text, by)
    ]


def fdb_takeover(answer: Answer) -> bool:
    """Full-Duplex-Bench 1.0's take-over, whatever the definition here.

    From the first speech of the file to the last at least 1.0 s, or more than 3 words (6 Han
    characters) in all, wherever they fall and whatever lies between.
    """
    if not answer.segments:
        return False
    span = answer.segments[-1].end - answer.segments[0].start
    text = "".join(delta for _, delta in answer.texts)
    return span >= STATED.turn_s or _is_turn_by_words(text, STATED)


def _is_turn_by_words(text: str, by: Definition) -> bool:
    if by.turn_words is None or by.turn_han is None:
        return False
    latin, han = words(text)
    return latin > by.turn_words or han >= by.turn_han


def starts_in(parts: Sequence[Interval], start: float, end: float) -> bool:
    """Whether a part begins in ``[start, end)``."""
    return any(start <= part.start < end for part in parts)


def hesitation_metrics(
    answer: Answer, question: Question, by: Definition = STATED
) -> dict[str, Any]:
    """H1-H8 and the compatibility columns; all None without a prefix and a correction."""
    gap, prefix, correction = question.gap, question.prefix, question.correction
    if gap is None or prefix is None or correction is None:
        return dict.fromkeys(_HESITATION)
    parts, taken = turns(answer.segments, by), takeovers(answer, by)
    short = [part for part in parts if part not in taken]
    h1 = starts_in(taken, gap.start, gap.end)
    h2 = starts_in(taken, prefix.start, prefix.end)
    h3 = starts_in(taken, correction.start, correction.end - by.margin_s)
    user = [prefix, correction]
    over = overlap(answer.segments, user)
    return {
        "h1_gap_takeover": h1,
        "h2_prefix_barge_in": h2,
        "h3_correction_barge_in": h3,
        "h4_gap_backchannels": sum(gap.start <= part.start < gap.end for part in short),
        "h5_hold_failure": h1 or h2 or h3,
        "h6_overlap_s": over,
        "h6_overlap_ratio": over / (prefix.length + correction.length),
        "h7_gap_speech_s": overlap(answer.segments, [gap]),
        "h8_yield_s": yield_latency(parts, correction.start),
        "fdb_tor_whole": fdb_takeover(answer),
        "fdb_overlap_s": overlap(turns(answer.segments), merged(user, FDB_USER_PAUSE_S)),
        "mtr_pause": starts_in(taken, gap.start, gap.end + 1.0),
    }


_HESITATION = (
    "h1_gap_takeover",
    "h2_prefix_barge_in",
    "h3_correction_barge_in",
    "h4_gap_backchannels",
    "h5_hold_failure",
    "h6_overlap_s",
    "h6_overlap_ratio",
    "h7_gap_speech_s",
    "h8_yield_s",
    "fdb_tor_whole",
    "fdb_overlap_s",
    "mtr_pause",
)


def yield_latency(parts: Sequence[Interval], q0: float) -> float | None:
    """H8: how long a turn goes on once the user begins again; None if the model was silent."""
    active = [part for part in parts if part.start < q0 < part.end]
    return active[0].end - q0 if active else None


def settled_start(
    parts: Sequence[Interval], q1: float, margin_s: float = STATED.margin_s
) -> float | None:
    """Start of the answer: the first turn that begins no earlier than 0.25 s before q1.

    A turn that spans q1 (began earlier, H10) is no answer to the whole question; the answer is
    then the first turn that begins after q1.
    """
    spans = spanning(parts, q1, margin_s)
    earliest = q1 if spans else q1 - margin_s
    return next((part.start for part in parts if part.start >= earliest), None)


def spanning(parts: Sequence[Interval], q1: float, margin_s: float = STATED.margin_s) -> bool:
    """H10: a turn that began before the question's end, beyond the margin, and goes on over it."""
    return any(part.start < q1 - margin_s and part.end > q1 for part in parts)


def response_metrics(answer: Answer, question: Question, by: Definition = STATED) -> dict[str, Any]:
    """H9-H14: did an answer come, and when."""
    q1 = question.q1
    parts = turns(answer.segments, by)
    start = settled_start(parts, q1, by.margin_s)
    spans = spanning(parts, q1, by.margin_s)
    text = next((t for t, _ in answer.texts if t >= q1), None)
    packet = next((chunk.t for chunk in answer.audio if chunk.t >= q1), None)
    return {
        "h9_response_s": None if start is None or spans else start - q1,
        "h9_settled_s": None if start is None else start - q1,
        "h10_spanning": spans,
        "h11_responded": start is not None and start <= answer.media_s,
        "h11_late": start is not None and start > answer.media_s,
        "h12_first_text_s": None if text is None else text - q1,
        "h13_first_audio_s": None if packet is None else packet - q1,
        "h14_text_to_audio_s": text_to_audio(answer),
    }


def text_to_audio(answer: Answer) -> float | None:
    """H14: from the first text delta to the first audio chunk after it."""
    if not answer.texts:
        return None
    first = answer.texts[0][0]
    return next((chunk.t - first for chunk in answer.audio if chunk.t >= first), None)


def delivery_metrics(answer: Answer, pcm: np.ndarray) -> dict[str, Any]:
    """H15-H18: does the sound keep up, and is it whole. `pcm`: the wav's int16 samples."""
    arrived = sum(chunk.samples for chunk in answer.audio)
    spoken_s = arrived / answer.rate
    last = answer.audio[-1].t if answer.audio else None
    return {
        "h15_underrun_s": underrun(answer),
        "h16_rtf_compute": (
            answer.compute_s / spoken_s if spoken_s and answer.compute_s is not None else None
        ),
        "h16_rtf_stream": last / spoken_s if spoken_s and last is not None else None,
        "h17_saved_minus_delivered_s": saved_minus_delivered(answer, pcm),
        "h18_abrupt_end": abrupt_end(pcm, answer.rate),
    }


def underrun(answer: Answer, turn_gap: float = 1.0) -> float:
    """H15: seconds for which a running turn had nothing to play; longer gaps are a new turn."""
    holes = []
    for before, chunk in zip(answer.audio, answer.audio[1:], strict=False):
        hole = chunk.play_at - (before.play_at + before.samples / answer.rate)
        holes.append(hole if 0 < hole < turn_gap else 0.0)
    return sum(holes)


def saved_minus_delivered(answer: Answer, pcm: np.ndarray) -> float:
    """H17: sounding seconds in the wav outside the delivered chunks, less seconds that are missing.

    0 for an honest run without interruptions; a flush by an interruption shows as negative.
    """
    covered = np.zeros(len(pcm), bool)
    wanted = 0
    for chunk in answer.audio:
        start = round(chunk.play_at * answer.rate)
        covered[start : start + chunk.samples] = True
        wanted += chunk.samples
    extra = int(np.count_nonzero(pcm[~covered]))
    return (extra + int(covered.sum()) - wanted) / answer.rate


def abrupt_end(pcm: np.ndarray, rate: int) -> bool | None:
    """H18: the track falls from speech to digital silence at once, as if cut off.

    30 ms frames up to the last sample that is not zero; the last frame is at least 6 dB above the
    track's floor (10th percentile) and at most 18 dB below its loudest (the constants of
    Full-Duplex-Bench 1.5). None for a silent track.
    """
    frame = round(0.03 * rate)
    if not pcm.any():
        return None
    sounding = pcm[: len(pcm) - (pcm[::-1] != 0).argmax()].astype(np.float64)
    frames = sounding[len(sounding) % frame :].reshape(-1, frame)
    if not len(frames):
        return None
    level = 10 * np.log10((frames**2).mean(axis=1) + 1e-3)
    floor = float(np.percentile(level, 10))
    return bool(level[-1] >= floor + 6 and level[-1] >= level.max() - 18)


def stale_share(text: str, abandoned: str, corrected: str) -> float | None:
    """H22: of the answer's words that only one of the two questions has, the share from the first.

    A proxy for answering the question that was given up; None where no such word occurs.
    """
    said, first, second = (content_words(part) for part in (text, abandoned, corrected))
    stale, fresh = said & (first - second), said & (second - first)
    return len(stale) / len(stale | fresh) if stale | fresh else None


def content_words(text: str) -> set[str]:
    """Words of four letters or more, and pairs of neighbouring Han characters."""
    latin = {word for word in _WORD.findall(HAN.sub(" ", text.lower())) if len(word) >= 4}
    runs = re.findall(f"{HAN.pattern}+", text)
    return latin | {run[at : at + 2] for run in runs for at in range(len(run) - 1)}
