"""Compiled files with other video frames, for probes of whether a model looks."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import av

from hfd.media_time import FPS


def frozen_from(source: Path, start_s: float, target: Path) -> None:
    """The file with the frame that is shown at `start_s` until the end; the sound bit for bit."""
    at = math.floor(start_s * FPS)
    frames = decoded(source)
    _write(source, [frames[min(n, at)] for n in range(len(frames))], target)


def with_frames_of(source: Path, other: Path, target: Path) -> None:
    """The file with another file's frames, in its own number and size; the sound bit for bit.

    A shorter other file shows its last frame to the end.
    """
    own, foreign = decoded(source), decoded(other)
    width, height = own[0].width, own[0].height
    shown = (foreign[min(n, len(foreign) - 1)] for n in range(len(own)))
    chosen = [frame.reformat(width=width, height=height) for frame in shown]
    _write(source, chosen, target)


def decoded(path: Path) -> list[av.VideoFrame]:
    """All video frames of a compiled file, in order."""
    with av.open(f"file:{path.absolute()}") as container:
        return list(container.decode(video=0))


def _write(source: Path, frames: list[av.VideoFrame], target: Path) -> None:
    with (
        av.open(f"file:{source.absolute()}") as old,
        av.open(f"file:{target.absolute()}", "w", format="mp4", options={"strict": "-2"}) as new,
    ):
        video = new.add_stream("libx264", rate=FPS, options={"crf": "18", "preset": "fast"})
        video.width, video.height, video.pix_fmt = frames[0].width, frames[0].height, "yuv420p"
        video.time_base = Fraction(1, FPS)
        video.thread_count = 1
        sound = new.add_stream_from_template(old.streams.audio[0])
        for number, frame in enumerate(frames):
            shown = frame.reformat(format="yuv420p")
            shown.pts, shown.time_base = number, Fraction(1, FPS)
            new.mux(video.encode(shown))
        new.mux(video.encode(None))
        for packet in old.demux(audio=0):
            if packet.dts is not None:
                packet.stream = sound
                new.mux(packet)
