"""A9 and A10: is the saved wav the sound that arrived, where it arrived?"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hfd.judge.findings import TRACE, WAV, Finding
from hfd.judge.plain_files import NotPlain, read_plain
from hfd.judge.trace import RATES, Trace, pcm_of


@dataclass(frozen=True)
class Wav:
    """A mono PCM16 file: `pcm` int16, shape [samples]; `sha256` of the file."""

    rate: int
    pcm: np.ndarray
    sha256: str

    @property
    def seconds(self) -> float:
        return len(self.pcm) / self.rate


def read_wav(path: Path) -> tuple[Wav | None, list[Finding]]:
    """Read the wav from its bytes; anything but a plain 44-byte header and PCM16 mono is wrong."""
    try:
        data = read_plain(path)
    except NotPlain as error:
        return None, [Finding("A14", WAV, str(error))]
    if len(data) < 44:
        return None, [Finding("A14", WAV, f"is no wav: {len(data)} bytes")]
    riff, size, wave, fmt, fmt_size, code, channels, rate, byte_rate, align, bits, name, length = (
        struct.unpack("<4sI4s4sIHHIIHH4sI", data[:44])
    )
    header = (riff, wave, fmt, fmt_size, code, channels, align, bits, name)
    if header != (b"RIFF", b"WAVE", b"fmt ", 16, 1, 1, 2, 16, b"data"):
        return None, [Finding("A14", WAV, "is no plain mono PCM16 wav (header, bytes 0-43)")]
    if rate not in RATES:
        return None, [Finding("A14", WAV, f"has {rate} samples a second")]
    if (size, byte_rate, length) != (len(data) - 8, 2 * rate, len(data) - 44) or length % 2:
        return None, [Finding("A14", WAV, "its header states other lengths than the file has")]
    pcm = np.frombuffer(data, "<i2", offset=44)
    return Wav(rate, pcm, hashlib.sha256(data).hexdigest()), []


@dataclass(frozen=True)
class Chunk:
    """One ``audio`` line as it ended up in the track.

    Attributes:
        line: its line number in the trace.
        t: media second at which it arrived.
        start, end: samples of the track that it still fills after all cuts.
    """

    line: int
    t: float
    start: int
    end: int
    input_seq: int


def rebuild(trace: Trace) -> tuple[np.ndarray, list[Chunk], list[Finding]]:
    """The track that the trace describes (int16), its chunks, and what breaks the queue rule."""
    rate = trace.header["output_rate"]
    findings: list[Finding] = []
    pieces: list[tuple[Chunk, np.ndarray]] = []
    end = 0
    for number, line in trace.of("audio", "control"):
        if line["kind"] == "audio":
            at = max(end, round(line["t"] * rate))
            if line["play_at"] != at:
                late = (line["play_at"] - at) / rate
                way = "later" if late > 0 else "earlier"
                findings.append(
                    Finding(
                        "A9",
                        TRACE,
                        f"audio that arrived at {line['t']:.3f} s plays {abs(late):.3f} s {way} "
                        "than the queue allows",
                        number,
                    )
                )
            start = max(0, line["play_at"])
            pcm = pcm_of(line)
            end = start + len(pcm)
            pieces.append((Chunk(number, line["t"], start, end, line["input_seq"]), pcm))
        elif "cut_at" in line:
            expected = min(end, round(line["t"] * rate))
            if line["cut_at"] != expected:
                findings.append(
                    Finding("A9", TRACE, f"cuts at {line['cut_at']}, not at {expected}", number)
                )
            end = max(0, line["cut_at"])
            pieces, cleared = _cut(pieces, end)
            if cleared != line["cleared"]:
                findings.append(
                    Finding(
                        "A9",
                        TRACE,
                        f"drops {cleared} samples but says {line['cleared']}",
                        number,
                    )
                )
    spoken = max((chunk.end for chunk, _ in pieces), default=0)
    media = round(trace.header["media_samples"] / 16_000 * rate)
    track = np.zeros(max(spoken, media), "<i2")
    for chunk, pcm in pieces:
        track[chunk.start : chunk.end] = pcm
    return track, [chunk for chunk, _ in pieces], findings


def _cut(
    pieces: list[tuple[Chunk, np.ndarray]], at: int
) -> tuple[list[tuple[Chunk, np.ndarray]], int]:
    kept, cleared = [], 0
    for chunk, pcm in pieces:
        length = max(0, min(len(pcm), at - chunk.start))
        cleared += len(pcm) - length
        if length:
            cut = Chunk(chunk.line, chunk.t, chunk.start, chunk.start + length, chunk.input_seq)
            kept.append((cut, pcm[:length]))
    return kept, cleared


def check_wav(
    wav: Wav, track: np.ndarray, chunks: list[Chunk], header: dict[str, Any]
) -> list[Finding]:
    """A10: the wav must be the rebuilt track, bit for bit; names the first sample that is not."""
    rate = header["output_rate"]
    if wav.rate != rate:
        return [Finding("A10", WAV, f"has {wav.rate} Hz, the trace says {rate} Hz")]
    same = min(len(wav.pcm), len(track))
    different = np.flatnonzero(wav.pcm[:same] != track[:same])
    if len(different):
        at = int(different[0])
        source = next((c.line for c in chunks if c.start <= at < c.end), None)
        origin = f"line {source} of {TRACE}" if source else "silence in the trace"
        return [
            Finding(
                "A10",
                WAV,
                f"sample {at} ({at / rate:.3f} s) differs from {origin}; "
                f"{len(different)} samples differ in all",
            )
        ]
    if len(wav.pcm) != len(track):
        return [Finding("A10", WAV, f"has {len(wav.pcm)} samples, the trace gives {len(track)}")]
    return []
