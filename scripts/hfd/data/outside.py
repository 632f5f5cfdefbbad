"""Samples of other people's speech sets, compiled to this project's media: sound and a still frame.

Nothing of these sets is in this repository; whoever has a copy imports it (docs/outside_sets.md).
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

from hfd.data.adapter import ADAPTER_SCHEMA
from hfd.data.compile import verify
from hfd.data.decode import decode, pcm_digest
from hfd.data.encode import encode, ffmpeg_version
from hfd.data.ids import UniqueIds, check_id
from hfd.data.raw import COMPILER, MEAN, RawEvent
from hfd.data.sound import build_track, probe_recording
from hfd.data.source_video import SourceVideo, probe_video
from hfd.data.timeline import Clip, Timeline
from hfd.errors import HfdError
from hfd.files import atomic_path, atomic_write, sha256_file, write_json
from hfd.media_time import FPS, VIDEO_FRAME_SAMPLES, seconds_to_samples

_SIZE = (320, 240)
_GREY = 118


@dataclass(frozen=True)
class OutsideRow:
    """One sample of an outside set.

    Attributes:
        sample_id: unique; begins with the set's name.
        task: the set and its subset, as the report's task.
        audio: the user's sound.
        language: ``en`` or ``zh``.
        events: of the adapter: ``role``, ``text`` and, where the annotation has them, ``start`` and
            ``end`` in seconds.
        scores: what its authors (or who published on it) count, by name of the metric: the seconds
            [start, end) in which the model's speech counts.
        licence: of the sample.
        annotation: as it stands in the set.
        speaker: who speaks, where that is known; samples of one are drawn together.
        note: what is odd about it, for whoever imports it.
    """

    sample_id: str
    task: str
    audio: Path
    language: str
    events: Sequence[Mapping[str, Any]]
    scores: Mapping[str, tuple[float, float]]
    licence: str
    annotation: Any
    speaker: str | None = None
    note: str = ""


def import_rows(rows: Sequence[OutsideRow], out: Path) -> Iterator[OutsideRow]:
    """Compile rows into ``out/videos`` and ``out/adapters``; the manifest comes last.

    Yields:
        Each row when it is compiled.

    Raises:
        HfdError: there is a manifest already, an id is unfit or twice there, or a recording cannot
            be compiled; then no manifest is written.
    """
    manifest = out / "manifest.jsonl"
    if manifest.exists():
        raise HfdError("is there already", file=manifest, remedy="Name another folder with --out")
    unique = UniqueIds()
    for number, row in enumerate(rows, 1):
        check_id(row.sample_id, file=row.audio, field="id")
        unique.add(row.sample_id, number, file=row.audio, field="id")
    for name in ("videos", "adapters"):
        (out / name).mkdir(parents=True, exist_ok=True)
    lines = []
    with tempfile.TemporaryDirectory() as scratch:
        still = probe_video(_still_video(Path(scratch) / "still.mp4"))
        for row in rows:
            lines.append(json.dumps(_compiled(row, still, out), ensure_ascii=False))
            yield row
    atomic_write(manifest, "\n".join(lines) + "\n")


def _compiled(row: OutsideRow, still: SourceVideo, out: Path) -> dict[str, Any]:
    """Compile one row; return its line of the manifest."""
    recording = probe_recording(row.audio)
    seconds = float(recording.seconds)
    samples = seconds_to_samples(recording.seconds)
    whole = RawEvent("user", row.audio, 0, seconds, 0, seconds, "", "", MEAN, "audio")
    body = math.ceil(samples / VIDEO_FRAME_SAMPLES)
    timeline = Timeline((Clip(whole, 0, samples, 0),), body, ())
    track = build_track(timeline, (recording,))
    video = out / "videos" / f"{row.sample_id}.mp4"
    with atomic_path(video) as part:
        encode(still, track.pcm, timeline, part)
        found = decode(part)
        verify(found, timeline, track.pcm, video)
    write_json(
        out / "adapters" / f"{row.sample_id}.json",
        {
            "schema": ADAPTER_SCHEMA,
            "sample_id": row.sample_id,
            "duration_seconds": timeline.seconds,
            "events": [dict(event) for event in row.events],
            "compiled": {
                "compiler": COMPILER,
                "ffmpeg": ffmpeg_version(),
                "sources_sha256": {"audio": sha256_file(row.audio)},
                "source_rates": [recording.rate],
                "video_sha256": sha256_file(video),
                "pcm_sha256": pcm_digest(found.pcm),
                "frames_sha256": found.frames_sha256,
                "changes": list(track.changes),
            },
            "raw": row.annotation,
        },
    )
    line = {
        "sample_id": row.sample_id,
        "task": row.task,
        "video": f"videos/{row.sample_id}.mp4",
        "adapter": f"adapters/{row.sample_id}.json",
        "duration_seconds": timeline.seconds,
        "language": row.language,
        "licence": row.licence,
        "scores": {name: list(window) for name, window in row.scores.items()},
    }
    return line | ({"speaker": row.speaker} if row.speaker else {})


def _still_video(path: Path) -> Path:
    """A grey frame, shown twice: the compiler holds the last one for as long as there is sound."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=FPS)
        stream.width, stream.height, stream.pix_fmt = *_SIZE, "yuv420p"
        for k in range(2):
            grey = np.full((_SIZE[1], _SIZE[0], 3), _GREY, np.uint8)
            frame = av.VideoFrame.from_ndarray(grey, format="rgb24")
            frame.pts, frame.time_base = k, Fraction(1, FPS)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))
    return path
