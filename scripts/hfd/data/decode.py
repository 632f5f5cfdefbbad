"""A compiled file, decoded once from end to end: everything that checks want to know of it."""

from __future__ import annotations

import hashlib
import itertools
from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

from hfd.data.media import open_media, picture_stream
from hfd.pcm import to_float32, to_int16
from hfd.video_frames import ONE_THREAD, picture_digest

STILL_LUMA = 1.5
"""Mean difference of luma (0-255) below which two pictures count as one frozen picture."""
_KEPT = 64
"""How many last pictures are compared; double padding shows in 31."""
_EIGHT_BIT_LUMA = ("yuv420p", "yuvj420p", "yuv422p", "yuv444p", "nv12", "gray")
_LUMA_WIDTH = 640
"""Pictures are compared at about this width."""


@dataclass
class Decoded:
    """What came out of a file.

    Attributes:
        video, audio: facts about the two streams (``codec``, ``pix_fmt``, ``rate``, ...);
            `audio` is empty where there is no sound.
        streams: number of picture and of sound streams.
        comment: the container's ``comment`` tag.
        width, height: upright picture size.
        times: time of every picture, in seconds.
        pcm: int16, shape [samples]: all that was decoded, channels by mean, from time 0.
        frozen_run: pictures at the end that equal the last one (itself too), at most 64.
        frames_sha256: over the digests of all pictures (docs/formats.md), or None without any.
        errors: what the decoders complained about, and why decoding stopped if it did.
    """

    video: dict[str, Any] = field(default_factory=dict)
    audio: dict[str, Any] = field(default_factory=dict)
    streams: tuple[int, int] = (0, 0)
    comment: str = ""
    width: int = 0
    height: int = 0
    times: list[Fraction] = field(default_factory=list)
    pcm: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int16))
    frozen_run: int = 0
    frames_sha256: str | None = None
    errors: list[str] = field(default_factory=list)

    @property
    def frames(self) -> int:
        """Number of pictures."""
        return len(self.times)

    @property
    def lossless(self) -> bool:
        """Whether the sound's codec keeps every sample, so that silence stays exact."""
        codec = self.audio.get("codec", "")
        return codec in ("flac", "alac") or codec.startswith("pcm_")


def decode(path: Path) -> Decoded:
    """Decode a file whole; damage inside it is told in `errors`, not raised.

    Raises:
        HfdError: the file cannot be opened, or has no picture stream.
    """
    with open_media(path) as container:
        stream = picture_stream(container, path)
        stream.thread_type = "NONE"
        sound = next((s for s in container.streams.audio if s.codec_context), None)
        found = Decoded(
            video=_video_facts(stream),
            audio=_audio_facts(sound) if sound else {},
            streams=(len(container.streams.video), len(container.streams.audio)),
            comment=container.metadata.get("comment", ""),
        )
        pictures, samples = _Pictures(found), _Sound()
        wanted = [stream, sound] if sound else [stream]
        try:
            for packet in container.demux(*wanted):
                for frame in packet.decode():
                    if frame.is_corrupt:
                        found.errors.append(f"damaged {packet.stream.type} at {frame.time} s")
                    (pictures if packet.stream is stream else samples).add(frame)
        except (av.error.FFmpegError, ValueError) as error:
            found.errors.append(f"decoding stopped: {error}")
        pictures.finish()
        found.pcm = samples.track()
    return found


def pcm_digest(pcm: np.ndarray) -> str:
    """SHA-256 of int16 samples as little-endian PCM (docs/formats.md)."""
    return hashlib.sha256(pcm.astype("<i2")).hexdigest()


def _video_facts(stream: av.VideoStream) -> dict[str, Any]:
    codec = stream.codec_context
    return {
        "codec": codec.name,
        "pix_fmt": codec.pix_fmt,
        "rate": str(stream.average_rate) if stream.average_rate else None,
    }


def _audio_facts(stream: av.AudioStream) -> dict[str, Any]:
    codec = stream.codec_context
    return {"codec": codec.name, "rate": codec.sample_rate, "channels": codec.channels}


class _Pictures:
    def __init__(self, found: Decoded) -> None:
        self._found = found
        self._hash = hashlib.sha256()
        self._last: deque[np.ndarray] = deque(maxlen=_KEPT)

    def add(self, frame: av.VideoFrame) -> None:
        found = self._found
        time = frame.pts * frame.time_base if frame.pts is not None else Fraction(-1)
        found.times.append(Fraction(time))
        self._last.append(_luma(frame))
        self._hash.update(picture_digest(frame))
        sideways = frame.rotation % 180
        found.width = frame.height if sideways else frame.width
        found.height = frame.width if sideways else frame.height

    def finish(self) -> None:
        found = self._found
        if not self._last:
            return
        found.frames_sha256 = self._hash.hexdigest()
        last = self._last[-1]
        backwards = reversed(self._last)
        still = itertools.takewhile(lambda p: _difference(p, last) < STILL_LUMA, backwards)
        found.frozen_run = sum(1 for _ in still)


class _Sound:
    def __init__(self) -> None:
        self._parts: list[np.ndarray] = []
        self._start = 0

    def add(self, frame: av.AudioFrame) -> None:
        samples = to_float32(frame.to_ndarray())
        if frame.format.is_packed:
            samples = samples.reshape(-1, frame.layout.nb_channels).T
        if not self._parts and frame.pts:
            self._start = round(frame.pts * frame.time_base * frame.sample_rate)
        self._parts.append(to_int16(samples.mean(axis=0)))

    def track(self) -> np.ndarray:
        if not self._parts:
            return np.zeros(0, np.int16)
        joined = np.concatenate(self._parts)
        return joined[-self._start :] if self._start < 0 else np.pad(joined, (self._start, 0))


def _luma(frame: av.VideoFrame) -> np.ndarray:
    """The luma plane, thinned out to about 640 columns; shape [rows, columns], uint8."""
    if frame.format.name not in _EIGHT_BIT_LUMA:
        frame = frame.reformat(format="gray", threads=ONE_THREAD)
    plane = frame.planes[0]
    rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
    step = max(1, plane.width // _LUMA_WIDTH)
    return rows[::step, : plane.width : step].copy()


def _difference(a: np.ndarray, b: np.ndarray) -> float:
    """Mean absolute difference; pictures of two sizes differ altogether."""
    return float(np.abs(a.astype(np.int16) - b).mean()) if a.shape == b.shape else 255.0
