"""One raw hesitation row into a compiled video and its adapter, verified before either exists."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from hfd.data.adapter import ADAPTER_SCHEMA
from hfd.data.decode import Decoded, decode, pcm_digest
from hfd.data.encode import compiled_frames, encode, ffmpeg_version
from hfd.data.raw import COMPILER, RawSample
from hfd.data.sound import Recording, Track, build_track, probe_recording
from hfd.data.source_video import SourceVideo, probe_video
from hfd.data.timeline import Clip, Timeline, hesitation_timeline
from hfd.errors import HfdError
from hfd.files import atomic_path, sha256_file, write_json
from hfd.media_time import FPS, PAD_VIDEO_FRAMES, SAMPLE_RATE, samples_to_seconds


@dataclass(frozen=True)
class Plan:
    """One row whose sources have been looked at: all that is known before a frame is decoded.

    Attributes:
        sample: the row.
        source: its video.
        recordings: the recording of each question.
        timeline: where everything lies in the compiled file.
        track: the finished sound.
    """

    sample: RawSample
    source: SourceVideo
    recordings: tuple[Recording, ...]
    timeline: Timeline
    track: Track


def plan_sample(sample: RawSample, full_first_question: str = "refuse") -> Plan:
    """Look at a row's sources and lay out its compiled file.

    Args:
        sample: the row; its files must be there.
        full_first_question: ``refuse`` or ``warn``, see `hesitation_timeline`.

    Raises:
        HfdError: the row, the video's packets or a recording are not as they must be.
    """
    source = probe_video(sample.video)
    recordings = tuple(
        probe_recording(event.audio, event.channel, f"{event.field}.channel")
        for event in sample.events
    )
    lengths = [recording.seconds for recording in recordings]
    timeline = hesitation_timeline(sample, lengths, source.end, full_first_question)
    track = build_track(timeline, recordings)
    return Plan(sample, source, recordings, timeline, track)


def try_sample(sample: RawSample, full_first_question: str = "refuse") -> list[str]:
    """Everything that compiling does with the sources, without compiling; nothing is written.

    Returns:
        What compiling would change or finds odd, one sentence each.

    Raises:
        HfdError: compiling would refuse the row, with this error.
    """
    plan = plan_sample(sample, full_first_question)
    changes: list[str] = []
    for _ in compiled_frames(plan.source, plan.timeline, changes):
        pass
    return [*changes, *plan.track.changes, *plan.timeline.warnings]


def compile_sample(
    sample: RawSample, video: Path, adapter: Path, full_first_question: str = "refuse"
) -> tuple[str, ...]:
    """Compile one row.

    Args:
        sample: the row; its files must be there.
        video: where the compiled video goes.
        adapter: where the adapter goes, once the video is in place.
        full_first_question: ``refuse`` or ``warn``, see `hesitation_timeline`.

    Returns:
        What was changed and what is odd, one sentence each; also written into the adapter.

    Raises:
        HfdError: anything in the row, the sources or the finished video is not as it must be;
            then neither file is written or changed.
    """
    plan = plan_sample(sample, full_first_question)
    with atomic_path(video) as part:
        changes = encode(plan.source, plan.track.pcm, plan.timeline, part)
        found = decode(part)
        verify(found, plan.timeline, plan.track.pcm, video)
        hashes = {
            "video_sha256": sha256_file(part),
            "pcm_sha256": pcm_digest(found.pcm),
            "frames_sha256": found.frames_sha256,
        }
    write_json(adapter, _adapter(plan, [*changes, *plan.track.changes], hashes))
    return (*changes, *plan.track.changes, *plan.timeline.warnings)


def verify(found: Decoded, timeline: Timeline, pcm: np.ndarray, path: Path) -> None:
    """Compare a decoded file with what it was meant to be.

    Raises:
        HfdError: any stream, count, time or sample differs; `path` is named.
    """
    wanted = {
        "streams": ((1, 1), found.streams),
        "video format": (("h264", "yuv420p"), (found.video["codec"], found.video["pix_fmt"])),
        "sound format": (
            {"codec": "flac", "rate": SAMPLE_RATE, "channels": 1},
            found.audio,
        ),
        "decoder errors": ([], found.errors),
        "pictures": (timeline.frames, found.frames),
        "frame times": ([Fraction(k, FPS) for k in range(timeline.frames)], found.times),
        "samples": (len(pcm), len(found.pcm)),
        "sound": (True, np.array_equal(pcm, found.pcm)),
        "frozen video frames at the end": (True, found.frozen_run >= PAD_VIDEO_FRAMES),
    }
    for what, (expected, got) in wanted.items():
        if expected != got:
            raise HfdError(
                f"{what} of the compiled file: expected {expected!s:.80}, found {got!s:.80}",
                file=path,
                remedy="Nothing was written; report this with the source files",
            )


def source_hashes(sample: RawSample) -> dict[str, str]:
    """SHA-256 of each source file, by what it is to the sample."""
    files = {"video": sample.video} | {event.role: event.audio for event in sample.events}
    return {name: sha256_file(path) for name, path in files.items()}


def _adapter(plan: Plan, changes: list[str], hashes: dict[str, str | None]) -> dict[str, Any]:
    sample, timeline = plan.sample, plan.timeline
    first, second = timeline.clips
    return {
        "schema": ADAPTER_SCHEMA,
        "sample_id": sample.sample_id,
        "duration_seconds": timeline.seconds,
        "p0": samples_to_seconds(first.start),
        "p1": samples_to_seconds(first.end),
        "q0": samples_to_seconds(second.start),
        "q1": samples_to_seconds(second.end),
        "events": [_event(first), _event(second)],
        "compiled": {
            "compiler": COMPILER,
            "recipe": sample.recipe,
            "ffmpeg": ffmpeg_version(),
            "sources_sha256": source_hashes(sample),
            "source_rates": [recording.rate for recording in plan.recordings],
            **hashes,
            "body_frames": timeline.body,
            "frames": timeline.frames,
            "samples": timeline.samples,
            "clipped_samples": plan.track.clipped,
            "changes": changes,
            "warnings": list(timeline.warnings),
        },
        "raw": dict(sample.row),
    }


def _event(clip: Clip) -> dict[str, Any]:
    return {
        "role": clip.event.role,
        "start": samples_to_seconds(clip.start),
        "end": samples_to_seconds(clip.end),
        "start_sample": clip.start,
        "end_sample": clip.end,
        "text": clip.event.text,
        "spoken_text": clip.event.spoken_text,
    }
