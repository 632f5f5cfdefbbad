"""Hostile folders: each entry damages one honest result folder in one way.

Every one of them must be answered by findings or "not judged", never by an exception, a hang or
unbounded memory. A new crash that anybody meets becomes an entry here.
"""

from __future__ import annotations

import gzip
import json
import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.judge.forge import Forgery, write_rows

Damage = Callable[[Path], None]


def _line(of: str, /, **fields: Any) -> Damage:
    """Set fields of the first line of a kind and chain the trace anew."""

    def damage(folder: Path) -> None:
        forgery = Forgery(folder)
        forgery.of(of)[0].update(fields)
        forgery.write_odd_trace()
        forgery.write_documents()

    return damage


def _raw_line(kind: str, old: str, new: str) -> Damage:
    """Replace text inside the first line of a kind, as a writer of another language might."""

    def damage(folder: Path) -> None:
        path = folder / "trace.jsonl.gz"
        rows = gzip.decompress(path.read_bytes()).decode().splitlines()
        at = next(n for n, row in enumerate(rows) if f'"kind":"{kind}"' in row)
        key = rows[at].index(old)
        end = next(i for i in range(key + len(old), len(rows[at])) if rows[at][i] in ",}")
        rows[at] = rows[at][:key] + old + new + rows[at][end:]
        write_rows(folder, rows)

    return damage


def _field(name: str, *path: str, value: Any) -> Damage:
    """Set one field of a JSON file."""

    def damage(folder: Path) -> None:
        target = folder / name
        whole = json.loads(target.read_text(encoding="utf-8"))
        place = whole
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        target.write_text(json.dumps(whole), encoding="utf-8")

    return damage


def _bytes(name: str, data: bytes) -> Damage:
    return lambda folder: (folder / name).write_bytes(data) and None


def _changed(name: str, change: Callable[[bytes], bytes]) -> Damage:
    return lambda folder: (folder / name).write_bytes(change((folder / name).read_bytes())) and None


def _bomb(folder: Path) -> None:
    """64 KiB that unpack to more than any bound, in one line."""
    with gzip.open(folder / "trace.jsonl.gz", "wb", compresslevel=9) as file:
        for _ in range(300):
            file.write(b" " * 2**20)


def _many_lines(folder: Path) -> None:
    write_rows(folder, ["{}"] * 200_000)


def _wav_header(at: int, value: int) -> Damage:
    def change(data: bytes) -> bytes:
        return data[:at] + struct.pack("<I", value) + data[at + 4 :]

    return _changed("assistant_audio.wav", change)


def _pipe(name: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink()
        os.mkfifo(folder / name)

    return damage


def _link(name: str, target: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to(target)

    return damage


def _folder(name: str) -> Damage:
    def damage(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).mkdir()

    return damage


RESULT, PROVENANCE, TRACE, WAV = (
    "result.json",
    "provenance.json",
    "trace.jsonl.gz",
    "assistant_audio.wav",
)
HUGE = 10**400
CORPUS: dict[str, Damage] = {
    "gzip bomb": _bomb,
    "many empty lines": _many_lines,
    "time of 1e9": _line("text", t=1e9),
    "time of 1e308": _line("audio", t=1e308),
    "negative time": _line("text", t=-1e9),
    "infinite time": _raw_line("text", '"t":', "Infinity"),
    "time that is not a number": _raw_line("text", '"t":', "NaN"),
    "giant integer clock": _line("text", mono_ns=HUGE),
    "integer of 6000 digits": _raw_line("text", '"mono_ns":', "9" * 6000),
    "giant own time": _line("text", own_ns=HUGE),
    "giant seq": _line("text", input_seq=HUGE),
    "giant place": _line("audio", play_at=10**12),
    "place of hours": _line("audio", play_at=10**9),
    "giant count": _line("audio", samples=HUGE),
    "giant unit": _line("header", unit_samples=HUGE),
    "giant media": _line("header", media_samples=10**15, media_frames=10**15),
    "hours of media": _line("header", media_samples=57_600_000, media_frames=18_000),
    "rate of 1": _line("header", output_rate=1),
    "rate of millions": _line("header", output_rate=10**7),
    "unknown clock": _line("header", clock="sundial"),
    "base64 that is not ASCII": _line("audio", pcm="é声音"),
    "base64 of odd length": _line("audio", pcm="QQ=="),
    "half a surrogate pair": _raw_line("text", '"delta":', '"\\ud83d"'),
    "half a pair in a key": _raw_line("text", '"delta":', '"x","\\ud83d":1'),
    "text of zero bytes": _line("text", delta="\x00" * 1000),
    "nested metric": _line("metric", values={"a": [[[[[[[[1]]]]]]]], "context_tokens": HUGE}),
    "context that is a float": _line("metric", values={"context_tokens": 1e300}),
    "frames of other things": _line("input", frames=[None, "x", {}, 1e9]),
    "giant due": _line("input", due=1e15),
    "start far away": _line("input", start=10**15),
    "kind that is a list": _line("text", kind=[]),
    "result in UTF-16": _changed(RESULT, lambda data: data.decode().encode("utf-16")),
    "result with CRLF": _changed(RESULT, lambda data: data.replace(b"\n", b"\r\n")),
    "result with a byte order mark": _changed(RESULT, lambda data: b"\xef\xbb\xbf" + data),
    "result of half a pair": _changed(
        RESULT, lambda data: data.replace(b'"text": "', b'"text": "\\ud83d', 1)
    ),
    "result nested 2000 deep": _bytes(RESULT, b"[" * 2000 + b"]" * 2000),
    "result nested 100000 deep": _bytes(RESULT, b"[" * 100_000),
    "result that is a number": _bytes(RESULT, b"1e400"),
    "result with a giant integer": _field(RESULT, "end_s", value=HUGE),
    "result with a giant compute": _field(RESULT, "rtf", "compute_s", value=HUGE),
    "result with a giant rate": _field(RESULT, "sample_rate", value=HUGE),
    "result with qend of 1e300": _field(RESULT, "qend", value=1e300),
    "result with twice a key": _changed(
        RESULT, lambda data: data.replace(b'"text"', b'"text": "", "text"', 1)
    ),
    "provenance with a giant seed": _field(PROVENANCE, "model", "seed", value=HUGE),
    "provenance with odd dtypes": _field(PROVENANCE, "model", "dtypes", value={"int4": -1}),
    "provenance with odd settings": _field(PROVENANCE, "model", "settings", value={"": [None]}),
    "provenance whose hop is 0": _field(PROVENANCE, "contract", "codec_hop_samples", value=0),
    "provenance with an odd frame rule": _field(PROVENANCE, "contract", "frame_rule", value={}),
    "provenance that is a list": _bytes(PROVENANCE, b"[]\n"),
    "wav whose header lies about its size": _wav_header(40, 2**32 - 1),
    "wav whose RIFF size lies": _wav_header(4, 0),
    "wav with rate 0": _wav_header(24, 0),
    "wav with rate 4294967295": _wav_header(24, 2**32 - 1),
    "wav that ends in its header": _bytes(WAV, b"RIFF" + bytes(20)),
    "wav with an odd byte": _changed(WAV, lambda data: data + b"\x00"),
    "wav of loud noise": _changed(WAV, lambda data: data[:44] + os.urandom(len(data) - 44)),
    **{f"{name} is a pipe": _pipe(name) for name in (RESULT, WAV, TRACE, PROVENANCE)},
    **{f"{name} is a folder": _folder(name) for name in (RESULT, WAV, TRACE, PROVENANCE)},
    "the wav is a link to a device": _link(WAV, "/dev/zero"),
    "the result is a link to itself": _link(RESULT, RESULT),
    "the trace is a link to nothing": _link(TRACE, "nowhere"),
}
