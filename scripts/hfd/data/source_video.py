"""A source video, looked at through its packets: nothing is decoded here.

What media time is, for every container: 0 is where the earliest of the file's video and sound
tracks begins. Only video and sound decide; subtitles and telemetry do not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

import av

from hfd.data.media import find_video_stream, open_media
from hfd.data.stamp import Stamp
from hfd.errors import HfdError, reason

_TRUNCATED_S = Fraction(1, 4)
_CLOCK_JUMP_S = 1
"""Decoding times may be this far out of order (seconds); a larger step back is another clock."""
_NO_TIMELINE = 0x0200
"""FFmpeg's AVFMT_TS_DISCONT: transport and program streams, whose clock starts anywhere."""
_NO_TIMES = 0x0080
"""FFmpeg's AVFMT_NOTIMESTAMPS: bare codec data."""
_LEAD_IN = {"aac": 1024, "mp3": 1105, "mp2": 481, "ac3": 256, "eac3": 256}
"""Samples that an encoder puts before the first one of the sound, by codec (the least for AAC).

MP4 and Matroska say it and FFmpeg takes it off; transport and program streams cannot say it."""


@dataclass(frozen=True)
class SourceVideo:
    """What compiling needs to know of a source video.

    Attributes:
        path: the file.
        stream: index of its video stream in the file.
        begin: time stamp of its first video frame, in the file's own seconds.
        late: media time of that frame, in seconds.
        end: media time at which its last video frame ends.
        slots: media times of the video frames in the order in which they are shown, where the
            container has no time stamps of its own (AVI); else None.
    """

    path: Path
    stream: int
    begin: Fraction
    late: Fraction
    end: Fraction
    slots: tuple[Fraction, ...] | None


def video_stream(container: av.container.InputContainer, source: SourceVideo) -> av.VideoStream:
    """The source's video stream in its opened file."""
    return next(s for s in container.streams.video if s.index == source.stream)


@dataclass
class _Track:
    """What the packets of one track say; times in the file's own seconds."""

    begin: Fraction | None = None
    end: Fraction | None = None
    decoded: list[Fraction] = field(default_factory=list)

    def add(self, packet: av.Packet[Any], unit_s: Fraction) -> None:
        ticks = packet.pts if packet.pts is not None else packet.dts
        if not packet.size or ticks is None or packet.is_discard:
            return
        tick_s = packet.time_base or Fraction(0)
        time = ticks * tick_s
        end = time + (packet.duration * tick_s if packet.duration else unit_s)
        self.begin = time if self.begin is None else min(self.begin, time)
        self.end = end if self.end is None else max(self.end, end)
        if packet.dts is not None:
            self.decoded.append(packet.dts * tick_s)


def probe_video(path: Path) -> SourceVideo:
    """Look at a source video.

    Raises:
        HfdError: no video, no video frame, no time stamps, a clock that jumps back, cut short, or
            already compiled.
    """
    with open_media(path) as container:
        if Stamp.parse(container.metadata.get("comment", "")):
            raise HfdError(
                "is already compiled, with its 3 s tail",
                file=path,
                field="video",
                remedy="Name the source video, not the compiled one",
            )
        if int(container.format.flags) & _NO_TIMES:
            raise HfdError(
                f"has no time stamps (bare {container.format.name})",
                file=path,
                remedy="Put it into a container at its frame rate (ffmpeg -r RATE -i … -c copy …)",
            )
        stream = find_video_stream(container, path)
        tracks = _read_tracks(container, stream, path)
        video = tracks[stream.index]
        if video.begin is None or video.end is None:
            raise HfdError("has no video frame", file=path, remedy="Deliver the video again")
        _refuse_jump_back(video, path)
        _refuse_truncated(container, tracks, path)
        if container.format.name == "avi":
            return _without_time_stamps(path, stream, video)
        late = video.begin - min([video.begin, *_sound_begins(container, tracks)])
        if int(container.format.flags) & _NO_TIMELINE:  # its clock ticks at 90 kHz: off by a tick
            late = Fraction(round(late * 1000), 1000)
        end = late + video.end - video.begin
        return SourceVideo(path, stream.index, video.begin, late, end, None)


def _without_time_stamps(path: Path, stream: av.VideoStream, video: _Track) -> SourceVideo:
    """AVI: the n-th chunk is decoded at its place in the file, the n-th frame is shown there."""
    slots = tuple(sorted(video.decoded))
    end = slots[-1] + _frame_s(stream)
    return SourceVideo(path, stream.index, slots[0], slots[0], end, slots)


def _read_tracks(
    container: av.container.InputContainer, stream: av.VideoStream, path: Path
) -> dict[int, _Track]:
    """Every track of the file by its index, subtitles and data too."""
    tracks = {each.index: _Track() for each in container.streams}
    seconds_each = _frame_s(stream)
    try:
        for packet in container.demux():
            unit_s = seconds_each if packet.stream is stream else Fraction(0)
            tracks.setdefault(packet.stream.index, _Track()).add(packet, unit_s)
    except av.error.FFmpegError as error:
        raise HfdError(
            f"is damaged ({reason(error)})", file=path, remedy="Deliver the video again"
        ) from error
    return tracks


def _frame_s(stream: av.VideoStream) -> Fraction:
    """How long a video frame is shown whose packet does not say it."""
    rate = stream.average_rate or stream.guessed_rate
    return 1 / Fraction(rate) if rate else Fraction(0)


def _sound_begins(
    container: av.container.InputContainer, tracks: dict[int, _Track]
) -> list[Fraction]:
    """When each sound track begins, what its encoder put before the first sample taken off."""
    begins = []
    for stream in container.streams.audio:
        begin = tracks[stream.index].begin
        if begin is None:
            continue
        if stream.start_time is not None:
            begin = stream.start_time * (stream.time_base or Fraction(0))
        codec = stream.codec_context
        if codec and codec.sample_rate and int(container.format.flags) & _NO_TIMELINE:
            begin += Fraction(_LEAD_IN.get(codec.name.removesuffix("float"), 0), codec.sample_rate)
        begins.append(begin)
    return begins


def _refuse_jump_back(video: _Track, path: Path) -> None:
    for before, after in pairwise(video.decoded):
        if before - after > _CLOCK_JUMP_S:
            at = float(before - min(video.decoded))
            raise HfdError(
                f"its clock jumps back by {float(before - after):.2f} s after {at:.2f} s",
                file=path,
                remedy="Two recordings in one file? Join them anew, so that times go on",
            )


def _refuse_truncated(
    container: av.container.InputContainer, tracks: dict[int, _Track], path: Path
) -> None:
    """Refuse a file that ends before its header says so, video and sound apart.

    Where the header has one length for the whole file, any track may be the one that fills it.
    """
    whole = None
    if container.duration is not None:
        whole = Fraction(container.duration + (container.start_time or 0), av.time_base)
    last = max(track.end for track in tracks.values() if track.end is not None)
    streams: list[av.VideoStream | av.AudioStream] = []
    streams += container.streams.video
    streams += container.streams.audio
    for stream in streams:
        end, promised = tracks[stream.index].end, _promise(stream)
        if end is None:
            continue
        if promised is None:
            end, promised = last, whole
        elif whole is not None:
            promised = min(promised, whole)
        if promised is not None and promised - end > _TRUNCATED_S:
            raise HfdError(
                f"ends at {float(end):.2f} s, but its header promises {float(promised):.2f} s",
                file=path,
                remedy="The file is cut short: deliver it again",
            )


def _promise(stream: av.VideoStream | av.AudioStream) -> Fraction | None:
    """When the track should end by the file's header, or None if that says nothing of it."""
    if stream.duration is not None:
        return (stream.duration + (stream.start_time or 0)) * (stream.time_base or Fraction(0))
    written = stream.metadata.get("DURATION", "").split(":")  # Matroska: 00:00:06.000000000
    try:
        hours, minutes, seconds = map(Fraction, written)
    except ValueError:
        return None
    return hours * 3600 + minutes * 60 + seconds
