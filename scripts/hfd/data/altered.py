"""Compiled files with other video frames or another sound, for probes of what a model uses."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path

import av
import numpy as np

from hfd.media_time import FPS, SAMPLE_RATE


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


def with_sound(source: Path, sound: np.ndarray, target: Path) -> None:
    """The file with its frames bit for bit and this sound (int16 [samples], 16 kHz; FLAC)."""
    with (
        av.open(f"file:{source.absolute()}") as old,
        av.open(f"file:{target.absolute()}", "w", format="mp4", options={"strict": "-2"}) as new,
    ):
        pictures = new.add_stream_from_template(old.streams.video[0])
        voice = new.add_stream("flac", rate=SAMPLE_RATE, layout="mono")
        for packet in old.demux(video=0):
            if packet.dts is not None:
                packet.stream = pictures
                new.mux(packet)
        frame = av.AudioFrame.from_ndarray(sound.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate, frame.pts = SAMPLE_RATE, 0
        queue = av.AudioFifo()
        queue.write(frame)
        while piece := queue.read(4096, partial=True):
            new.mux(voice.encode(piece))
        # FLAC's last packet only repeats its header: it has no time and cannot be muxed.
        new.mux([packet for packet in voice.encode(None) if (packet.dts or 0) > 0])


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
