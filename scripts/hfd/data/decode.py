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

from hfd.data.compiled_tracks import (
    Hole,
    SoundTrack,
    check_frame_count,
    check_frame_time,
    frame_time,
)
from hfd.data.media import find_video_stream, open_media
from hfd.errors import HfdError, reason
from hfd.pcm import to_float32, to_int16
from hfd.video_frames import ONE_THREAD, video_frame_digest

STILL_LUMA = 1.5
"""Mean difference of luma (0-255) below which two video frames count as one frozen video frame."""
_KEPT = 64
"""How many last video frames are compared; double padding shows in 31."""
_EIGHT_BIT_LUMA = ("yuv420p", "yuvj420p", "yuv422p", "yuv444p", "nv12", "gray")
_LUMA_WIDTH = 640
"""Video frames are compared at about this width."""


@dataclass
class Decoded:
    """What came out of a file.

    Attributes:
        video, audio: facts about the two streams (``codec``, ``pix_fmt``, ``rate``, ...);
            `audio` is empty where there is no sound.
        streams: number of video and of sound streams.
        comment: the container's ``comment`` tag.
        width, height: upright video frame size.
        times: time of every video frame, in seconds.
        off_grid: which video frame does not lie at k/5 s, the first of them, or None.
        pcm: int16, shape [samples]: all that was decoded, channels by mean, from time 0.
        frozen_run: video frames at the end that equal the last one (itself too), at most 64.
        frames_sha256: over the digests of all video frames (docs/formats.md), or None without any.
        holes: holes and overlaps in the sound, placed as their time stamps say.
        errors: what the decoders complained about, why decoding stopped if it did, and why the
            file cannot be streamed if that is so.
    """

    video: dict[str, Any] = field(default_factory=dict)
    audio: dict[str, Any] = field(default_factory=dict)
    streams: tuple[int, int] = (0, 0)
    comment: str = ""
    width: int = 0
    height: int = 0
    times: list[Fraction] = field(default_factory=list)
    off_grid: str | None = None
    pcm: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int16))
    frozen_run: int = 0
    frames_sha256: str | None = None
    holes: list[Hole] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    @property
    def frames(self) -> int:
        """Number of video frames."""
        return len(self.times)

    @property
    def lossless(self) -> bool:
        """Whether the sound's codec keeps every sample, so that silence stays exact."""
        codec = self.audio.get("codec", "")
        return codec in ("flac", "alac") or codec.startswith("pcm_")


def decode(path: Path) -> Decoded:
    """Decode a file whole; damage inside it is told in `errors`, not raised.

    Raises:
        HfdError: the file cannot be opened, or has no video stream.
    """
    with open_media(path) as container:
        stream = find_video_stream(container, path)
        stream.thread_type = "NONE"
        sound = next((s for s in container.streams.audio if s.codec_context), None)
        found = Decoded(
            video=_video_facts(stream),
            audio=_audio_facts(sound) if sound else {},
            streams=(len(container.streams.video), len(container.streams.audio)),
            comment=container.metadata.get("comment", ""),
        )
        shown, samples = _Frames(found, path), _Sound(found, path)
        wanted = [stream, sound] if sound else [stream]
        packets = 0
        try:
            for packet in container.demux(*wanted):
                packets += packet.stream is stream and packet.size > 0
                for frame in packet.decode():
                    if isinstance(frame, av.VideoFrame):
                        shown.add(frame)
                    elif isinstance(frame, av.AudioFrame):
                        samples.add(frame)
        except (av.error.FFmpegError, ValueError) as error:
            found.errors.append(f"decoding stopped: {reason(error)}")
        shown.finish(packets)
        found.pcm = samples.track()
    return found


def pcm_digest(pcm: np.ndarray) -> str:
    """SHA-256 of int16 samples as little-endian PCM (docs/formats.md)."""
    return hashlib.sha256(pcm.astype("<i2").tobytes()).hexdigest()


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


class _Frames:
    def __init__(self, found: Decoded, path: Path) -> None:
        self._found, self._path = found, path
        self._hash = hashlib.sha256()
        self._last: deque[np.ndarray] = deque(maxlen=_KEPT)

    def add(self, frame: av.VideoFrame) -> None:
        found = self._found
        _note_damage(frame, "video", found)
        time = frame_time(frame)
        try:
            check_frame_time(time, found.frames, self._path)
        except HfdError as error:
            found.off_grid = found.off_grid or error.problem
        found.times.append(Fraction(-1) if time is None else time)
        self._last.append(_luma(frame))
        self._hash.update(video_frame_digest(frame))
        sideways = frame.rotation % 180
        found.width = frame.height if sideways else frame.width
        found.height = frame.width if sideways else frame.height

    def finish(self, packets: int) -> None:
        found = self._found
        if not found.errors:
            try:
                check_frame_count(packets, found.frames, self._path)
            except HfdError as error:
                found.errors.append(error.problem)
        if not self._last:
            return
        found.frames_sha256 = self._hash.hexdigest()
        last = self._last[-1]
        backwards = reversed(self._last)
        still = itertools.takewhile(lambda p: _difference(p, last) < STILL_LUMA, backwards)
        found.frozen_run = sum(1 for _ in still)


class _Sound:
    """Sound as the stream of units places it.

    What that refuses is kept too, one after the other, for the other rules to look at.
    """

    def __init__(self, found: Decoded, path: Path) -> None:
        self._found = found
        self._track = SoundTrack(path)
        self._parts: list[np.ndarray] = []

    def add(self, frame: av.AudioFrame) -> None:
        _note_damage(frame, "audio", self._found)
        try:
            self._parts.append(to_int16(self._track.add(frame)))
        except HfdError as error:
            if error.problem not in self._found.errors:
                self._found.errors.append(error.problem)
            samples = to_float32(frame.to_ndarray())
            if frame.format.is_packed:
                samples = samples.reshape(-1, frame.layout.nb_channels).T
            self._parts.append(to_int16(samples.mean(axis=0)))

    def track(self) -> np.ndarray:
        self._found.holes = self._track.holes
        return np.concatenate(self._parts) if self._parts else np.zeros(0, np.int16)


def _note_damage(frame: av.VideoFrame | av.AudioFrame, kind: str, found: Decoded) -> None:
    if frame.is_corrupt:
        found.errors.append(f"damaged {kind} at {frame.time} s")


def _luma(frame: av.VideoFrame) -> np.ndarray:
    """The luma plane, thinned out to about 640 columns; shape [rows, columns], uint8."""
    if frame.format.name not in _EIGHT_BIT_LUMA:
        frame = frame.reformat(format="gray", threads=ONE_THREAD)
    plane = frame.planes[0]
    rows = np.frombuffer(memoryview(plane), np.uint8).reshape(plane.height, plane.line_size)
    step = max(1, plane.width // _LUMA_WIDTH)
    thin: np.ndarray = rows[::step, : plane.width : step].copy()
    return thin


def _difference(a: np.ndarray, b: np.ndarray) -> float:
    """Mean absolute difference; video frames of two sizes differ altogether."""
    return float(np.abs(a.astype(np.int16) - b).mean()) if a.shape == b.shape else 255.0
