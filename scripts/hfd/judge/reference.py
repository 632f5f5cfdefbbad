"""What a sample should have been: its manifest row, adapter, check record and decoded sound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import av
import numpy as np

from hfd.data.adapter import Adapter, read_adapter
from hfd.data.compiled_tracks import read_sound
from hfd.data.manifest import Sample
from hfd.data.media import find_video_stream, open_media
from hfd.errors import HfdError
from hfd.files import read_json, sha256_file
from hfd.judge.intervals import Interval
from hfd.judge.metrics import Question
from hfd.video_frames import video_frame_digest


@dataclass(frozen=True)
class Reference:
    """The sample's side of the comparison, shared by all models.

    Attributes:
        sample: the manifest row.
        adapter: what is said in it, or None.
        video_sha256, adapter_sha256: hashes of the files as they are now.
        check: the record of work/checks, empty where there is none.
        pcm: the decoded sound, int16 at 16 kHz, shape [samples].
        frames: the digest of every video frame, in order (docs/formats.md: ``frames_sha``).
    """

    sample: Sample
    adapter: Adapter | None
    video_sha256: str
    adapter_sha256: str | None
    check: Mapping[str, Any]
    pcm: np.ndarray
    frames: tuple[bytes, ...]

    @property
    def question(self) -> Question | None:
        """The user's words for the metrics; None where the adapter does not tell."""
        adapter = self.adapter
        if adapter is None or adapter.qend is None:
            return None
        if adapter.first is None or adapter.second is None:
            return Question(adapter.qend)
        first, second = adapter.first, adapter.second
        return Question(
            adapter.qend, Interval(first.start, first.end), Interval(second.start, second.end)
        )


def read_reference(sample: Sample, checks: Path | None) -> Reference:
    """Hash and decode one sample's files.

    Raises:
        HfdError: the adapter or the check record is broken, or the sound has a large hole.
        av.error.FFmpegError: the video cannot be decoded.
    """
    check = checks / f"{sample.sample_id}.json" if checks else None
    return Reference(
        sample=sample,
        adapter=read_adapter(sample.adapter) if sample.adapter else None,
        video_sha256=sha256_file(sample.video),
        adapter_sha256=sha256_file(sample.adapter) if sample.adapter else None,
        check=read_json(check) if check and check.is_file() else {},
        pcm=read_sound(sample.video),
        frames=_read_frames(sample.video),
    )


def _read_frames(video: Path) -> tuple[bytes, ...]:
    with open_media(video) as container:
        stream = find_video_stream(container, video)
        stream.thread_type = "NONE"
        return tuple(video_frame_digest(frame) for frame in container.decode(stream))


def reference_or_why(sample: Sample | None, checks: Path | None) -> Reference | str:
    """The sample's own files, or why a delivery must be judged without them."""
    if sample is None or not sample.video.is_file():
        return "the compiled files are not here to compare with"
    try:
        return read_reference(sample, checks)
    except (HfdError, OSError, ValueError, av.error.FFmpegError) as error:
        return f"the compiled file or its adapter cannot be used: {error}"
