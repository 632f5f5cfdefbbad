"""What a listener got of an answer: the turns of a trace, and what cuts took away of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hfd.judge.intervals import Interval
from hfd.judge.trace import Trace
from hfd.judge.wav_check import Chunk

_ENDS = ("stop", "interrupt", "turn_end", "listen")
CUTS = ("stop", "interrupt")


@dataclass(frozen=True)
class Turn:
    """One stretch of the model's speech, from the end of the one before to its own.

    Attributes:
        text: what was written in it.
        played: its chunks as they were played, in seconds of the wav.
        cut: whether a stop or an interruption took a part of it: of the text an unknown tail was
            then never heard.
    """

    text: str
    played: Sequence[Interval]
    cut: bool


def turns_of(trace: Trace, chunks: Sequence[Chunk]) -> list[Turn]:
    """The trace's turns in order, those without text and sound left out."""
    rate = trace.header["output_rate"]
    kept = {chunk.line: chunk for chunk in chunks}
    found: list[Turn] = []
    text = ""
    audio: list[tuple[int, dict[str, Any]]] = []

    def close(by_cut: bool) -> None:
        played = [kept[n] for n, _ in audio if n in kept]
        lost = sum(line["samples"] for _, line in audio) - sum(c.end - c.start for c in played)
        if text or audio:
            parts = [Interval(chunk.start / rate, chunk.end / rate) for chunk in played]
            found.append(Turn(text, parts, lost > 0 or (by_cut and bool(text.strip()))))

    for number, line in trace.of("text", "audio", "control"):
        if line["kind"] == "text":
            text += line["delta"]
        elif line["kind"] == "audio":
            audio.append((number, line))
        elif line["control"] in _ENDS:
            close(line["control"] in CUTS)
            text, audio = "", []
    close(False)
    return found
