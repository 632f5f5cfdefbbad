"""What two runs of one sample have in common; needs nothing but a model's environment."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from hfd.files import read_json
from hfd.judge.trace import read_trace

RERUNS = ("repeat", "pause", "cache", "neighbour", "vision", "jitter")
"""Kinds of probes that run a sample again (hfd.probes.disturbed)."""


@dataclass(frozen=True)
class Outputs:
    """What one run said, without its times.

    Attributes:
        text: all text.
        deltas: the pieces in which it came.
        sound: SHA-256 of all PCM, in order.
        chunks: lengths of the audio chunks in samples.
        onset_s: first audible sample of the wav, or None.
        status: ``ok`` or ``no_response``.
    """

    text: str
    deltas: tuple[str, ...]
    sound: str
    chunks: tuple[int, ...]
    onset_s: float | None
    status: str


def outputs_of(folder: Path) -> Outputs:
    """Read a result folder."""
    trace, result = read_trace(folder / "trace.jsonl.gz"), read_json(folder / "result.json")
    audio = [line for _, line in trace.of("audio")]
    pcm = hashlib.sha256("".join(line["pcm"] for line in audio).encode()).hexdigest()
    deltas = tuple(line["delta"] for _, line in trace.of("text"))
    chunks = tuple(line["samples"] for line in audio)
    onset = result.get("first_audio_s")
    return Outputs("".join(deltas), deltas, pcm, chunks, onset, result["status"])


def difference(one: Outputs, other: Outputs) -> list[str]:
    """In what two runs differ: ``text``, ``deltas``, ``sound``, ``chunks``; [] if in nothing."""
    names = ("text", "deltas", "sound", "chunks")
    return [name for name in names if getattr(one, name) != getattr(other, name)]
