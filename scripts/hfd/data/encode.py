"""Video frames and sound of a compiled file in one pass, the same bytes on every run.

FFmpeg's libraries inside PyAV decode, convert, encode and mux in this process; every rule sees
every decoded frame.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from hfd.data.frame_format import Normaliser, pixel_aspect
from hfd.data.media import open_media
from hfd.data.source_frames import SourceFrames, TimedFrame, on_grid
from hfd.data.source_video import SourceVideo, video_stream
from hfd.data.stamp import Stamp
from hfd.data.timeline import Timeline
from hfd.errors import HfdError
from hfd.media_time import FPS, SAMPLE_RATE, VIDEO_FRAME_SAMPLES

_QP = 20
"""Constant quantiser of every frame: about 45 dB against the source on hard content."""
_TAIL_QP = 40
"""Coarse for the tail alone: nothing is left to refine, so each frame repeats its first."""
_ANY, _INTRA = 0, 1
"""FFmpeg's AVPictureType: the encoder chooses; a key frame."""
_MUXER = {"movflags": "+faststart", "fflags": "+bitexact", "strict": "experimental"}


def ffmpeg_version() -> str:
    """The libraries that compile, for example ``libavcodec 62.28.102 (PyAV 18.1.0)``."""
    version = ".".join(map(str, av.library_versions["libavcodec"]))
    return f"libavcodec {version} (PyAV {av.__version__})"


def time_limit(source: SourceVideo, seconds: float) -> float:
    """Seconds after which a source is given up: far beyond what the slowest machine needs."""
    return 60 + 20 * (float(source.end) + seconds)


def compiled_frames(
    source: SourceVideo, timeline: Timeline, changes: list[str]
) -> Iterator[av.VideoFrame]:
    """The video frames of the compiled file, one for each fifth of a second.

    Args:
        source: the source video.
        timeline: how many frames there are.
        changes: what was done to the source's frames is added here, in words.

    Raises:
        HfdError: the source is refused by one of its frames, or takes too long.
    """
    with open_media(source.path) as container:
        normalise = Normaliser(pixel_aspect(video_stream(container, source)))
    frames = SourceFrames(source)
    deadline = time.monotonic() + time_limit(source, timeline.seconds)
    for frame in on_grid(_in_time(frames, deadline, source), timeline.frames):
        try:
            yield normalise(frame)
        except HfdError as error:
            raise HfdError(error.problem, file=source.path, remedy=error.remedy) from error
    if source.late * FPS >= 1:
        late = float(source.late)
        changes.append(f"the video begins {late:.2f} s after its sound: its first frame is held")
    if frames.deinterlaced_from is not None:
        since = float(frames.deinterlaced_from)
        changes.append(f"interlaced from {since:.2f} s on: deinterlaced (bwdif)")
    changes += normalise.changes


def encode(source: SourceVideo, pcm: np.ndarray, timeline: Timeline, out: Path) -> list[str]:
    """Write the compiled file.

    Args:
        source: the source video.
        pcm: the finished sound, int16 mono at 16 kHz, shape [timeline.samples].
        timeline: the file's plan.
        out: where to write; the format is mp4, whatever its name.

    Returns:
        What was done to the source's video frames, in words.

    Raises:
        HfdError: the source is refused, or takes too long.
        OSError: `out` cannot be written.
    """
    changes: list[str] = []
    frames = compiled_frames(source, timeline, changes)
    first = next(frames)
    with av.open(f"file:{out.absolute()}", "w", format="mp4", options=_MUXER) as container:
        container.metadata["comment"] = str(Stamp.for_body(timeline.body))
        video = _video_stream(container, first, timeline)
        sound = container.add_stream("flac", rate=SAMPLE_RATE, layout="mono", format="s16")
        sound.codec_context.options = {"flags": "+bitexact"}
        frame: av.VideoFrame | None = first
        for k in range(timeline.frames):
            assert frame is not None
            frame.pts, frame.time_base = k, Fraction(1, FPS)
            frame.pict_type = _INTRA if k == timeline.body else _ANY
            container.mux(video.encode(frame))
            container.mux(sound.encode(_sound_frame(pcm, k)))
            frame = next(frames, None)
        container.mux(video.encode(None))
        container.mux(sound.encode(None))
    return changes


def _in_time(frames: SourceFrames, deadline: float, source: SourceVideo) -> Iterator[TimedFrame]:
    for timed in frames:
        if time.monotonic() > deadline:
            raise HfdError(
                f"was not compiled in time, only {float(timed[0]):.1f} s of it",
                file=source.path,
                remedy="Try it by hand on an idle machine (scripts/compile_hesitation.py)",
            )
        yield timed


def _video_stream(
    container: av.container.OutputContainer, first: av.VideoFrame, timeline: Timeline
) -> av.VideoStream:
    tail = f"{timeline.body + 1},{timeline.frames - 1},q={_TAIL_QP}"
    stream = container.add_stream("libx264", rate=FPS)
    stream.width, stream.height, stream.pix_fmt = first.width, first.height, "yuv420p"
    codec = stream.codec_context
    codec.time_base = Fraction(1, FPS)
    codec.thread_count = 1
    codec.color_range, codec.colorspace = first.color_range, first.colorspace
    codec.color_primaries, codec.color_trc = first.color_primaries, first.color_trc
    stream.options = {
        "preset": "ultrafast",
        "qp": str(_QP),
        "bf": "0",
        "flags": "+bitexact",
        "x264-params": f"ipratio=1:mbtree=0:scenecut=0:keyint=25:zones={tail}",
    }
    return stream


def _sound_frame(pcm: np.ndarray, k: int) -> av.AudioFrame:
    """The 3200 samples under video frame k."""
    start = k * VIDEO_FRAME_SAMPLES
    part = np.ascontiguousarray(pcm[None, start : start + VIDEO_FRAME_SAMPLES], np.int16)
    frame = av.AudioFrame.from_ndarray(part, format="s16", layout="mono")
    frame.sample_rate, frame.pts, frame.time_base = SAMPLE_RATE, start, Fraction(1, SAMPLE_RATE)
    return frame
