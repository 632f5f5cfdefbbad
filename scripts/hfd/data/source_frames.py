"""The video frames of a source: decoded, deinterlaced, on the 5 fps grid; or refused.

A file's header may be silent or wrong on colours, size and interlacing; every decoded frame says
them, so they are looked at frame by frame.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from fractions import Fraction
from pathlib import Path

import av
from av.filter import Graph

from hfd.data.frame_format import describe, link
from hfd.data.media import open_media
from hfd.data.source_video import SourceVideo, video_stream
from hfd.errors import HfdError
from hfd.media_time import FPS

_HDR = {16: "PQ (SMPTE ST 2084)", 18: "HLG (ARIB STD-B67)"}
"""Transfer characteristics (ITU-T H.273) that 8-bit frames cannot carry."""

TimedFrame = tuple[Fraction, av.VideoFrame]
"""Media time in seconds, and the frame shown from then on."""


class SourceFrames:
    """The frames of a source in the order in which they are shown, each with its media time.

    Attributes:
        deinterlaced_from: media time of the first interlaced frame, or None.

    Raises (while iterating):
        HfdError: damaged, HDR, a size that changes, frames without or out of time, no frame.
    """

    def __init__(self, source: SourceVideo) -> None:
        self._source = source
        self._deinterlacer: _Deinterlacer | None = None
        self.deinterlaced_from: Fraction | None = None

    def __iter__(self) -> Iterator[TimedFrame]:
        size = None
        for time, frame in self._decoded():
            _refuse_hdr(frame, time, self._source.path)
            size = size or (frame.width, frame.height)
            if (frame.width, frame.height) != size:
                raise HfdError(
                    f"changes its size at {float(time):.2f} s, from {size[0]}x{size[1]} to "
                    f"{frame.width}x{frame.height}",
                    file=self._source.path,
                    remedy="Deliver a video of one size, or cut it there",
                )
            yield from self._progressive(time, frame)
        if size is None:
            raise HfdError(
                "has no video frame that can be decoded",
                file=self._source.path,
                remedy="Deliver the video again",
            )
        if self._deinterlacer:
            yield from self._deinterlacer.rest()

    def _decoded(self) -> Iterator[TimedFrame]:
        path = self._source.path
        with open_media(path) as container:
            stream = video_stream(container, self._source)
            stream.thread_type = "NONE"
            before = None
            try:
                for number, frame in enumerate(_decode(container, stream)):
                    time = self._time(frame, number)
                    if frame.is_corrupt:
                        raise _damaged(path, f"the video frame at {float(time):.2f} s")
                    if before is not None and time < before:
                        raise HfdError(
                            f"its times go back from {float(before):.3f} to {float(time):.3f} s",
                            file=path,
                            remedy="Deliver the video again, with times that go on",
                        )
                    before = time
                    yield time, frame
            except av.error.FFmpegError as error:
                after = f"after {float(before):.2f} s, " if before is not None else ""
                raise _damaged(path, f"{after}{error}") from error

    def _time(self, frame: av.VideoFrame, number: int) -> Fraction:
        source = self._source
        if source.slots is not None:
            return source.slots[min(number, len(source.slots) - 1)]
        if frame.pts is None:
            raise HfdError(
                f"its video frame {number} has no time", file=source.path, remedy="Remux the video"
            )
        return frame.pts * (frame.time_base or 0) - source.begin + source.late

    def _progressive(self, time: Fraction, frame: av.VideoFrame) -> Iterator[TimedFrame]:
        """The frame, or what the deinterlacer gives for it, from the first interlaced one on."""
        if frame.interlaced_frame and not self._deinterlacer:
            self._deinterlacer = _Deinterlacer()
            self.deinterlaced_from = time
        if self._deinterlacer:
            yield from self._deinterlacer.push(time, frame)
        else:
            yield time, frame


class _Deinterlacer:
    """FFmpeg's bwdif, one frame for one frame; frames that are not interlaced pass as they are."""

    def __init__(self) -> None:
        self._graph: Graph | None = None
        self._format = ""
        self._times: deque[Fraction] = deque()

    def push(self, time: Fraction, frame: av.VideoFrame) -> Iterator[TimedFrame]:
        described = describe(frame)
        if self._graph is None or described != self._format:
            yield from self.rest()
            self._format = described
            self._graph = link(("buffer", described), ("bwdif", "mode=send_frame:deint=interlaced"))
        self._times.append(time)
        self._graph.vpush(frame)
        yield from self._ready()

    def rest(self) -> Iterator[TimedFrame]:
        """What the filter still holds."""
        if self._graph is not None:
            self._graph.vpush(None)
            yield from self._ready()
            self._graph = None

    def _ready(self) -> Iterator[TimedFrame]:
        while self._graph is not None:
            try:
                frame = self._graph.vpull()
            except (av.error.BlockingIOError, av.error.EOFError):
                return
            yield self._times.popleft(), frame


def _decode(
    container: av.container.InputContainer, stream: av.VideoStream
) -> Iterator[av.VideoFrame]:
    for packet in container.demux(stream):
        for frame in packet.decode():
            if isinstance(frame, av.VideoFrame):
                yield frame


def on_grid(frames: Iterable[TimedFrame], count: int) -> Iterator[av.VideoFrame]:
    """The frames of a compiled file: frame k is the last one of the source not after k/5 s.

    The first frame also stands in for the time before it, the last one for all the time after it.
    """
    shown: av.VideoFrame | None = None
    k = 0
    for time, frame in frames:
        while shown is not None and k < count and Fraction(k, FPS) < time:
            yield shown
            k += 1
        shown = frame
    while shown is not None and k < count:
        yield shown
        k += 1


def _refuse_hdr(frame: av.VideoFrame, time: Fraction, path: Path) -> None:
    transfer = _HDR.get(int(frame.color_trc))
    if transfer:
        raise HfdError(
            f"is HDR video, {transfer}, at {float(time):.2f} s",
            file=path,
            remedy="Deliver an SDR version; what tone mapping looks right is not ours to decide",
        )


def _damaged(path: Path, what: str) -> HfdError:
    return HfdError(f"is damaged ({what})", file=path, remedy="Deliver the video again")
