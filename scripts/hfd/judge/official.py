"""Scores of outside sets by their own definitions, beside ours (docs/outside_sets.md).

Their scorers read the words of a recogniser with times. Here a segment's text, as the model sent
it, is spread evenly over the segment that Silero found; a segment without text is one word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hfd.judge.intervals import Interval
from hfd.judge.metrics import HAN, Answer, segment_texts

FDB_TURN_S = 1.0
FDB_TURN_WORDS = 3


def official_scores(
    answer: Answer, scores: Mapping[str, Sequence[float]]
) -> dict[str, bool | float | None]:
    """The scores that a manifest row asks for.

    Args:
        answer: the model's side.
        scores: by name, the seconds [start, end) in which its speech counts.

    Returns:
        ``fdb_pause_tor`` and ``fdb_interruption_tor``: whether it takes the turn as
        Full-Duplex-Bench v1 counts; ``fdb_latency_s`` of an interruption; ``wait_held``: whether
        no speech begins or goes on in the seconds in which it should wait.
    """
    found: dict[str, bool | float | None] = {}
    for name, (start, end) in scores.items():
        if name == "wait_held":
            found[name] = not any(p.start < end and p.end > start for p in answer.segments)
        elif name in ("fdb_pause_tor", "fdb_interruption_tor"):
            words = word_times(answer, start, end)
            found[name] = fdb_takes_turn(words)
            if name == "fdb_interruption_tor":
                found["fdb_latency_s"] = fdb_latency(words, start)
    return found


def word_times(answer: Answer, start: float, end: float) -> list[Interval]:
    """Each word's seconds as far as they lie in [start, end); a Han character is a word."""
    found = []
    texts = segment_texts(answer.segments, answer.texts)
    for part, text in zip(answer.segments, texts, strict=True):
        count = max(1, len(HAN.sub(r" \g<0> ", text).split()))
        step = part.length / count
        for k in range(count):
            word = Interval(part.start + k * step, part.start + (k + 1) * step)
            inside = Interval(max(word.start, start), min(word.end, end))
            if inside.end > inside.start:
                found.append(inside)
    return found


def fdb_takes_turn(words: Sequence[Interval]) -> bool:
    """From the first word to the end of the last at least 1 s, or more than 3 words."""
    if not words:
        return False
    return words[-1].end - words[0].start >= FDB_TURN_S or len(words) > FDB_TURN_WORDS


def fdb_latency(words: Sequence[Interval], turn_end: float) -> float | None:
    """Seconds from the user's end to the first word, never below 0; None without a take-over."""
    return max(0.0, words[0].start - turn_end) if fdb_takes_turn(words) else None


def scores_of(row: Mapping[str, Any]) -> dict[str, Sequence[float]]:
    """The scores that a manifest row asks for; {} where it is no row of an outside set."""
    listed = row.get("scores")
    if not isinstance(listed, dict):
        return {}
    return {
        name: window
        for name, window in listed.items()
        if isinstance(window, list)
        and len(window) == 2
        and all(isinstance(t, int | float) for t in window)
    }
