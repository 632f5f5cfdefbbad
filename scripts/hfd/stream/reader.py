"""Read one compiled file as units: nothing lost, nothing added, order and pts exact.

The file's end is the end of its last frame. Audio beyond it (the tail of an AAC track) is cut,
audio that is missing before it is silence, and only the last unit is filled up with zeros.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np

from hfd.data.compiled_tracks import (
    SoundTrack,
    check_frame_count,
    check_frame_time,
    frame_time,
)
from hfd.data.media import open_media
from hfd.duplex.units import Frame, Unit
from hfd.errors import HfdError, reason
from hfd.media_time import SAMPLE_RATE, VIDEO_FRAME_SAMPLES


@dataclass(frozen=True)
class MediaInfo:
    """What a compiled file holds, from its packets alone (nothing is decoded).

    Attributes:
        frames: number of video frames.
        width, height: upright video frame size in pixels.
    """

    frames: int
    width: int
    height: int

    @property
    def samples(self) -> int:
        """Length of the file in samples at 16 kHz."""
        return self.frames * VIDEO_FRAME_SAMPLES

    @property
    def seconds(self) -> float:
        """Length of the file in seconds."""
        return self.samples / SAMPLE_RATE


def probe(path: Path) -> MediaInfo:
    """Count the video frames of a compiled file and tell their upright size.

    Raises:
        HfdError: the file cannot be opened or has no video frame or no sound.
    """
    with open_media(path) as container:
        video, _ = _streams(container, path)
        frames = sum(1 for packet in container.demux(video) if packet.size)
        if not frames:
            raise HfdError("has no video frame", file=path, remedy="Deliver or compile it again")
        container.seek(0)
        try:
            first = next(container.decode(video))
        except (StopIteration, av.error.FFmpegError) as error:
            raise _broken(path, error) from error
        width, height = video.width, video.height
        if first.rotation % 180:
            width, height = height, width
    return MediaInfo(frames, width, height)


def read_units(path: Path, unit_samples: int, info: MediaInfo | None = None) -> Iterator[Unit]:
    """Give the file's units in order, each as soon as both streams have passed its end.

    Args:
        path: a compiled file (5 video frames a second, 16 kHz mono).
        unit_samples: length of a unit in samples at 16 kHz (1280, 7680, 16000, ...).
        info: what `probe` said of the file, if it was asked before.

    Raises:
        HfdError: the file is broken, ends early, or is not on the 5 fps / 16 kHz grid.
    """
    info = info or probe(path)
    with open_media(path) as container:
        video, audio = _streams(container, path)
        video.thread_type = "NONE"
        shown = _Frames(path)
        sound = _Sound(path)
        ends = range(unit_samples, info.samples + unit_samples, unit_samples)
        index = 0
        try:
            for packet in container.demux(video, audio):
                for frame in packet.decode():
                    if isinstance(frame, av.VideoFrame):
                        shown.add(frame)
                    elif isinstance(frame, av.AudioFrame):
                        sound.add(frame)
                while index < len(ends) and ends[index] <= min(shown.end, sound.end):
                    yield _unit(index, unit_samples, shown, sound, info)
                    index += 1
        except av.error.FFmpegError as error:
            raise _broken(path, error) from error
        check_frame_count(info.frames, shown.count, path)
        for last in range(index, len(ends)):
            yield _unit(last, unit_samples, shown, sound, info)


class _Frames:
    """Decoded video frames that no unit has taken yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._waiting: deque[Frame] = deque()
        self.count = 0

    @property
    def end(self) -> int:
        return self.count * VIDEO_FRAME_SAMPLES

    def add(self, frame: av.VideoFrame) -> None:
        check_frame_time(frame_time(frame), self.count, self._path)
        self._waiting.append(Frame(self.count, frame))
        self.count += 1

    def take(self, end: int) -> tuple[Frame, ...]:
        taken = []
        while self._waiting and self._waiting[0].pts_samples < end:
            taken.append(self._waiting.popleft())
        return tuple(taken)


class _Sound:
    """Decoded samples that no unit has taken yet; `end` counts all that were decoded."""

    def __init__(self, path: Path) -> None:
        self._track = SoundTrack(path)
        self._waiting = np.zeros(0, np.float32)

    @property
    def end(self) -> int:
        return self._track.end

    def add(self, frame: av.AudioFrame) -> None:
        self._waiting = np.concatenate([self._waiting, self._track.add(frame)])

    def take(self, count: int) -> np.ndarray:
        """The next `count` samples, silence where the track has ended."""
        taken = self._waiting[:count]
        self._waiting = self._waiting[count:]
        return np.pad(taken, (0, count - len(taken)))


def _unit(index: int, unit_samples: int, shown: _Frames, sound: _Sound, info: MediaInfo) -> Unit:
    start = index * unit_samples
    valid = min(unit_samples, info.samples - start)
    pcm = np.pad(sound.take(unit_samples)[:valid], (0, unit_samples - valid))
    frames = shown.take(start + unit_samples)
    return Unit(index, start, pcm, frames, valid, start + unit_samples >= info.samples)


def _streams(
    container: av.container.InputContainer, path: Path
) -> tuple[av.VideoStream, av.AudioStream]:
    if not container.streams.video or not container.streams.audio:
        missing = "video" if not container.streams.video else "sound"
        raise HfdError(f"has no {missing} stream", file=path, remedy="Deliver or compile it again")
    return container.streams.video[0], container.streams.audio[0]


def _broken(path: Path, error: Exception) -> HfdError:
    return HfdError(
        f"cannot be read as a video ({reason(error)})",
        file=path,
        remedy="The file is damaged or no video: deliver or compile it again",
    )
