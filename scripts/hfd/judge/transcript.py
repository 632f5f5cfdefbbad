"""A15: does the voice say the text? What a recogniser heard, compared with what was written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hfd.errors import HfdError
from hfd.judge.metrics import words

LOWEST_LOGPROB = -0.9
"""tiny.en invents words for what it cannot hear; below this it is not believed."""
MOST_HAN = 0.2


@dataclass(frozen=True)
class Transcripts:
    """What was heard, by the wav's SHA-256: ``{text, avg_logprob, tail_text, recogniser}``."""

    heard: dict[str, dict[str, Any]] = field(default_factory=dict)


NOTHING_HEARD = Transcripts()


def compared(text: str, speech_s: float, heard: dict[str, Any] | None) -> dict[str, Any]:
    """H19 (last words heard at the end), H20 (WER) and H21 (Han characters per second).

    Args:
        text: what was written.
        speech_s: seconds of speech in the wav.
        heard: what a recogniser heard in it, or None.
    """
    latin, han = words(text)
    rate = han / speech_s if han > latin and speech_s else None
    believed = heard is not None and heard["avg_logprob"] >= LOWEST_LOGPROB
    if not believed or han > MOST_HAN * max(1, latin + han):
        return {"h19_tail_heard": None, "h20_wer": None, "h21_han_per_s": rate}
    said, got = normalised(text), normalised(heard["text"])
    tail = set(said[-3:]) & set(got[-6:])
    return {
        "h19_tail_heard": bool(tail) if said else None,
        "h20_wer": word_error_rate(said, got) if said else None,
        "h21_han_per_s": rate,
    }


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
        except (ValueError, AttributeError) as error:
            raise HfdError(
                f"is no transcript line ({error})",
                file=f"{path}:{number}",
                remedy="Delete the file and make the transcripts again",
            ) from error
        yield row


_NAMES = "zero one two three four five six seven eight nine ten eleven twelve"
_NUMBERS = {name: str(number) for number, name in enumerate(_NAMES.split(" "))}


def normalised(text: str) -> list[str]:
    """Words without case, punctuation and apostrophes; small numbers as digits."""
    found = re.findall(r"[a-z0-9]+", re.sub(r"['’]", "", text.lower()))
    return [_NUMBERS.get(word, word) for word in found]


def word_error_rate(said: list[str], heard: list[str]) -> float:
    """Edits that turn `said` into `heard`, per word of `said`; may exceed 1."""
    row = list(range(len(heard) + 1))
    for i, word in enumerate(said, 1):
        before, row[0] = row[0], i
        for j, other in enumerate(heard, 1):
            best = min(row[j] + 1, row[j - 1] + 1, before + (word != other))
            before, row[j] = row[j], best
    return row[-1] / max(1, len(said))
