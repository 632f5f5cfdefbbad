"""Words in time: when each word was written, and when a recogniser heard it in the wav.

A voice speaks what was written: it may come long after, never before. Sound that was made faster,
trimmed or moved forward afterwards is heard before its words exist. What a model still has to write
when the file is over it writes at once, while its voice takes its time: such words count only where
too few were written before.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hfd.judge.spoken_words import normalised
from hfd.judge.trace import Trace

FEWEST_WORDS = 4
"""Words that were written and heard; with fewer nothing is said of their times."""
_SHARE = 0.2
"""Of these words so many, and at least three, were over before they were written."""
_FALLS_S = 0.3
"""From the first third of the words to the last the voice comes this much nearer to the text."""


@dataclass(frozen=True)
class Alignment:
    """How a wav's words lie to their text.

    Attributes:
        words: how many were written and heard, while the file ran if they are enough.
        early: how many of them were over before they were written.
        falls_s: how much nearer to its text the voice is in the last third than in the first, in
            seconds; a transcript that a service sends late does not make it so.
    """

    words: int
    early: int
    falls_s: float

    @property
    def is_early(self) -> bool:
        """Whether the voice is heard before its text."""
        return self.early >= max(3, _SHARE * self.words)

    @property
    def is_faster(self) -> bool:
        """Whether it overtakes its text: it is faster than it was made."""
        return self.is_early and self.falls_s > _FALLS_S


def aligned(trace: Trace, heard: Mapping[str, Any] | None) -> Alignment | None:
    """Compare the times of written and heard words; None where there is too little of either.

    Args:
        trace: whose text deltas have times.
        heard: a transcript with ``words``, each (start, end, word) in seconds of the wav.
    """
    if heard is None or not heard.get("words"):
        return None
    said = _written(trace)
    while_media = sum(t <= _media_end(trace) for _, t in said)
    got = [(word, end) for _, end, spoken in heard["words"] for word in normalised(spoken)]
    blocks = difflib.SequenceMatcher(
        None, [word for word, _ in said], [word for word, _ in got], autojunk=False
    ).get_matching_blocks()
    pairs = [(a + n, got[b + n][1] - said[a + n][1]) for a, b, size in blocks for n in range(size)]
    in_step = [late for word, late in pairs if word < while_media]
    after = np.array(in_step if len(in_step) >= FEWEST_WORDS else [late for _, late in pairs])
    if len(after) < FEWEST_WORDS:
        return None
    third = max(1, len(after) // 3)
    falls = float(np.median(after[:third]) - np.median(after[-third:]))
    return Alignment(len(after), int((after < 0).sum()), falls)


def _media_end(trace: Trace) -> float:
    return max((line["t"] for _, line in trace.of("input")), default=math.inf)


def _written(trace: Trace) -> list[tuple[str, float]]:
    """Words with the time of the delta that completed each, in order."""
    text, times = "", []
    for _, line in trace.of("text"):
        text += line["delta"]
        times += [line["t"]] * len(line["delta"])
    return [
        (word, times[match.end() - 1])
        for match in re.finditer(r"\S+", text)
        for word in normalised(match.group())
    ]
