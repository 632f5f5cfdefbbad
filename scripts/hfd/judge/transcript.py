"""A15: does the voice say the text? What a recogniser heard, compared with what was written."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hfd.errors import HfdError
from hfd.judge.delivered import Turn
from hfd.judge.intervals import Interval, merged, overlap
from hfd.judge.metrics import words
from hfd.judge.spoken_words import heard_share, normalised, sounds_alike

LOWEST_LOGPROB = -0.9
"""tiny.en invents words for what it cannot hear; below this it is not believed."""
MOST_HAN = 0.2


@dataclass(frozen=True)
class Transcripts:
    """What was heard, by the wav's SHA-256: ``{text, words, avg_logprob, recogniser}``.

    Transcripts of earlier versions have no ``words``.
    """

    heard: dict[str, dict[str, Any]] = field(default_factory=dict)


NOTHING_HEARD = Transcripts()


def compared(
    turns: Sequence[Turn], speech: Sequence[Interval], heard: dict[str, Any] | None
) -> dict[str, Any]:
    """H19 (last words heard at the end), H20 (WER) and H21 (Han characters per second).

    What a cut took away was not heard and is not compared: of a cut turn any tail may be missing
    in what was heard, and its characters and sound do not count for the rate.

    Args:
        turns: what was written and played.
        speech: where the wav holds speech.
        heard: what a recogniser heard in it, or None.
    """
    latin, han = words("".join(turn.text for turn in turns))
    names = ("h19_tail_heard", "h20_wer", "h21_han_per_s", "words_per_s")
    values: dict[str, Any] = dict.fromkeys(names)
    rate = _rate(turns, speech)
    values["h21_han_per_s" if han > latin else "words_per_s"] = rate
    believed = heard is not None and heard["avg_logprob"] >= LOWEST_LOGPROB
    if not believed or heard is None or not latin or han > MOST_HAN * (latin + han):
        return values
    said = [(normalised(turn.text), turn.cut) for turn in turns]
    got = normalised(heard["text"])
    wer, counted = heard_share(said, got)
    if counted:
        values["h20_wer"] = wer
    if said and not said[-1][1]:
        last = [word for part, _ in said for word in part][-3:]
        values["h19_tail_heard"] = any(sounds_alike(a, b) for a in last for b in got[-6:])
    return values


def _rate(turns: Sequence[Turn], speech: Sequence[Interval]) -> float | None:
    """Words (Han characters, where they are more) per second of speech, of turns not cut."""
    whole = [turn for turn in turns if not turn.cut and turn.text.strip() and turn.played]
    spoken = overlap(speech, merged([part for turn in whole for part in turn.played], 0.0))
    latin, han = words("".join(turn.text for turn in whole))
    return max(latin, han) / spoken if spoken else None


def read_transcripts(path: Path | None) -> Transcripts:
    """Read a file of scripts/transcripts.py (one object per wav), or a folder of such files.

    No file means nothing was heard.
    """
    if path is None:
        return Transcripts()
    files = sorted(path.glob("*.jsonl")) if path.is_dir() else [path] if path.is_file() else []
    return Transcripts({row["wav_sha256"]: row for file in files for row in _rows(file)})


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            row = json.loads(line)
            if not {"wav_sha256", "text", "avg_logprob"} <= row.keys():
                raise ValueError("a field is missing")
            if not all(_is_timed(word) for word in row.get("words", ())):
                raise ValueError("its words have no times")
        except (ValueError, AttributeError, TypeError) as error:
            raise HfdError(
                f"is no transcript line ({error})",
                file=f"{path}:{number}",
                remedy="Delete the file and make the transcripts again",
            ) from error
        yield row


def _is_timed(word: Any) -> bool:
    """Whether it is a word with its times: [start, end, word], seconds of the wav."""
    return (
        isinstance(word, list)
        and len(word) == 3
        and all(isinstance(t, int | float) and math.isfinite(t) for t in word[:2])
        and isinstance(word[2], str)
    )
