"""Read a trace as a stranger would: from its bytes alone, with the hash chain checked on the way.

Nothing here shares code with the writer: the two agree only through docs/formats.md.
"""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hfd.judge.findings import TRACE, Finding
from hfd.judge.plain_files import MOST_BYTES, NotPlain, odd_value, read_plain

SCHEMA = "hfd-trace/1"
ZEROS = "0" * 64
_GZIP_HEADER = bytes.fromhex("1f8b08000000000004ff")
"""No name and no time, so that equal lines are equal bytes."""
KINDS = {
    "header",
    "input",
    "text",
    "audio",
    "control",
    "metric",
    "heard",
    "input_done",
    "end",
}
_FINE_BYTES = 256
_COARSE_BYTES = 16_384
"""Of a bomb so many bytes unpack to 16 MiB at once."""
_CANONICAL = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
)
OUTPUTS = {"text", "audio", "control", "metric", "heard"}


@dataclass
class Trace:
    """The lines of one trace, in order, as far as the file could be read.

    Attributes:
        lines: every line's object; line number in the file = index + 1.
        tail: SHA-256 of the last line, as provenance.json states it.
        sha256: of the file, as provenance.json states it; empty if it cannot be read.
        findings: what is wrong with the file, its chain, its numbering or the shape of a line.
    """

    lines: list[dict[str, Any]] = field(default_factory=list)
    tail: str = ZEROS
    sha256: str = ""
    findings: list[Finding] = field(default_factory=list)

    @property
    def header(self) -> dict[str, Any]:
        return self.lines[0] if self.lines and self.lines[0].get("kind") == "header" else {}

    def of(self, *kinds: str) -> list[tuple[int, dict[str, Any]]]:
        """(line number from 1, line) of the given kinds, in order."""
        return [(n, line) for n, line in enumerate(self.lines, 1) if line["kind"] in kinds]


def read_trace(path: Path) -> Trace:
    """Read and check one ``trace.jsonl.gz``; problems become findings, never exceptions."""
    trace = Trace()
    try:
        data = read_plain(path)
    except NotPlain as error:
        trace.findings.append(_broken(str(error)))
        return trace
    trace.sha256 = hashlib.sha256(data).hexdigest()
    if data[:10] != _GZIP_HEADER:
        trace.findings.append(_broken("the gzip header was not written by the workflow"))
    text, damage = _inflate(data)
    *whole, rest = text.split(b"\n")
    del text
    for number, row in enumerate(whole, 1):
        if not _take(trace, number, row):
            return trace
    if damage or rest:
        reason = damage or "the last line does not end with a newline"
        trace.findings.append(_broken(reason, len(whole) + 1))
    elif not whole:
        trace.findings.append(_broken("the trace is empty"))
    return trace


def pcm_of(line: dict[str, Any]) -> np.ndarray:
    """The int16 samples of an ``audio`` line, shape [samples]."""
    return np.frombuffer(base64.b64decode(line["pcm"], validate=True), dtype="<i2")


def _broken(message: str, line: int | None = None) -> Finding:
    return Finding("A4", TRACE, message, line)


def _inflate(data: bytes) -> tuple[bytes, str | None]:
    """Unzip as far as the bytes and the bound allow, so that damage can be named by its line."""
    with suppress(zlib.error):
        return _inflate_by(_COARSE_BYTES, data)
    return _inflate_by(_FINE_BYTES, data)


def _inflate_by(step: int, data: bytes) -> tuple[bytes, str | None]:
    """Unzip in steps of so many bytes; in fine ones damage keeps only what comes after it.

    Raises:
        zlib.error: the data is damaged, and the steps are not fine.
    """
    inflater = zlib.decompressobj(wbits=31)
    pieces: list[bytes] = []  # a bomb is never moved to where there is more room
    left = MOST_BYTES
    try:
        for start in range(0, len(data), step):
            pieces.append(inflater.decompress(data[start : start + step], left + 1))
            left -= len(pieces[-1])
            if left < 0 or inflater.unconsumed_tail:
                return b"", f"it unpacks to more than {MOST_BYTES} bytes"
    except zlib.error as error:
        if step != _FINE_BYTES:
            raise
        return b"".join(pieces), f"the compressed data is damaged here ({error})"
    text = b"".join(pieces)
    if not inflater.eof:
        return text, "the compressed data ends early"
    if inflater.unused_data:
        return text, "there are bytes after the end of the compressed data"
    return text, None


def _take(trace: Trace, number: int, row: bytes) -> bool:
    """Append one line; False when nothing after it can be trusted."""
    try:
        line = json.loads(row.decode())
        if not isinstance(line, dict) or "kind" not in line:
            raise ValueError("it is no object with a kind")
        odd = odd_value(line)
        if odd:
            raise ValueError(odd)
        canonical = _CANONICAL.encode(line)
    except (ValueError, RecursionError) as error:
        trace.findings.append(_broken(f"is no trace line ({error})", number))
        return False
    if line.get("prev") != trace.tail:
        # The line before was changed after this one was written (or this one's own `prev` was).
        wrong = number - 1 if number > 1 else 1
        trace.findings.append(
            _broken(f"the hash chain breaks: line {number} does not follow this line", wrong)
        )
        return False
    shape = _shape_error(line, number) or _range_error(line, trace.header or line)
    if canonical.encode() != row:
        shape = shape or "is not canonical JSON"
    if shape:
        trace.findings.append(_broken(shape, number))
        return False
    trace.lines.append(line)
    trace.tail = hashlib.sha256(row).hexdigest()
    return True


MOST_MEDIA_S = 3600
MOST_AFTER_S = 900
"""Speech goes on for at most so long after the file; more is an attack on the reader's memory."""
RATES = range(8_000, 48_001)
_RANGES = {
    "unit_samples": (1, 10_000_000),
    "output_rate": (RATES[0], RATES[-1]),
    "media_samples": (1, MOST_MEDIA_S * 16_000),
    "media_frames": (1, MOST_MEDIA_S * 5),
}


def _header_error(line: dict[str, Any]) -> str | None:
    if line["schema"] != SCHEMA:
        return f"schema is {line['schema']!r}, expected {SCHEMA!r}"
    for name, (least, most) in _RANGES.items():
        if not least <= line[name] <= most:
            return f"{name} is {line[name]}"
    return None


_FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "header": {
        "schema": str,
        "sample_id": str,
        "model": str,
        "clock": str,
        "unit_samples": int,
        "output_rate": int,
        "media_samples": int,
        "media_frames": int,
    },
    "input": {
        "unit": int,
        "start": int,
        "samples": int,
        "valid_samples": int,
        "frames": list,
        "pcm_sha": str,
        "frames_sha": str,
        "due": (int, float),
    },
    "text": {"delta": str, "input_seq": int},
    "audio": {"samples": int, "play_at": int, "pcm": str, "clipped": int, "input_seq": int},
    "control": {"control": str, "input_seq": int},
    "metric": {"name": str, "values": dict, "input_seq": int},
    "heard": {"text": str, "final": bool, "input_seq": int},
    "input_done": {},
    "end": {},
}


def _range_error(line: dict[str, Any], header: dict[str, Any]) -> str | None:
    """A time or a place that lies too far away to be meant."""
    most_s = header["media_samples"] / 16_000 + MOST_AFTER_S
    if abs(line["t"]) > most_s:
        return f"t is {line['t']}, the file lasts {header['media_samples'] / 16_000:.1f} s"
    places = {"play_at": line.get("play_at"), "cut_at": line.get("cut_at")}
    for name, place in places.items():
        if isinstance(place, int) and not 0 <= place <= most_s * header["output_rate"]:
            return f"{name} is {place}"
    return None


def _shape_error(line: dict[str, Any], number: int) -> str | None:
    """The first thing that is wrong with a line's own fields, or None."""
    kind = line["kind"]
    if not isinstance(kind, str) or kind not in KINDS:
        return f"unknown kind {kind!r}"
    if line.get("seq") != number - 1:
        return f"seq is {line.get('seq')}, expected {number - 1}"
    if (kind == "header") != (number == 1):
        return "the header must be the first line, and only the first"
    wanted: dict[str, type | tuple[type, ...]] = {"t": (int, float), "mono_ns": int}
    wanted |= _FIELDS[kind]
    for name, types in wanted.items():
        value = line.get(name)
        if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
            return f"{name} is missing or has the wrong type"
    if kind == "header":
        return _header_error(line)
    if kind == "audio":
        try:
            found = len(base64.b64decode(line["pcm"], validate=True))
        except ValueError as error:  # not ASCII, or no base64
            return f"pcm is no base64 ({error})"
        if found != 2 * line["samples"]:
            return f"pcm holds {found // 2} samples, the line says {line['samples']}"
    if not isinstance(line.get("own_ns", 0), int) or isinstance(line.get("own_ns"), bool):
        return "own_ns has the wrong type"
    cut = kind == "control" and line["control"] in ("stop", "interrupt")
    if cut and not all(isinstance(line.get(name), int) for name in ("cut_at", "cleared")):
        return "a stop or interrupt needs cut_at and cleared"
    return None
