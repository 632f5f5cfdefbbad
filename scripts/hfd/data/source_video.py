"""A source video, looked at through its packets: nothing is decoded, nothing is guessed."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import av

from hfd.data.media import open_media, picture_stream
from hfd.data.stamp import Stamp
from hfd.errors import HfdError

_TRUNCATED_S = Fraction(1, 4)
_HDR = {16: "PQ (SMPTE ST 2084)", 18: "HLG (ARIB STD-B67)"}
"""Transfer characteristics (ITU-T H.273) that 8-bit pictures cannot carry."""


@dataclass(frozen=True)
class SourceVideo:
    """What compiling needs to know of a source video.

    Attributes:
        path: the file.
        stream: index of its picture stream in the file.
        end: end of the last picture, in seconds from the file's 0.
    """

    path: Path
    stream: int
    end: Fraction


def probe_video(path: Path) -> SourceVideo:
    """Look at a source video.

    Raises:
        HfdError: no video, no picture, no times, HDR, cut short, or already compiled.
    """
    with open_media(path) as container:
        if Stamp.parse(container.metadata.get("comment", "")):
            raise HfdError(
                "is already compiled, with its 3 s tail",
                file=path,
                field="video",
                remedy="Name the source video, not the compiled one",
            )
        stream = picture_stream(container, path)
        _refuse_hdr(stream, path)
        zero = Fraction(container.start_time or 0, av.time_base)
        ends = _stream_ends(container, path)
        if stream.index not in ends:
            raise HfdError("has no picture", file=path, remedy="Deliver the video again")
        _refuse_truncated(container, max(ends.values()) - zero, path)
        return SourceVideo(path, stream.index, ends[stream.index] - zero)


def _stream_ends(container: av.container.InputContainer, path: Path) -> dict[int, Fraction]:
    """End of the last packet of every picture and sound stream, in the file's own seconds."""
    streams = [*container.streams.video, *container.streams.audio]
    ends: dict[int, Fraction] = {}
    try:
        for packet in container.demux(*streams):
            time = packet.pts if packet.pts is not None else packet.dts
            if not packet.size or time is None:
                continue
            end = (time + (packet.duration or 0)) * packet.time_base
            ends[packet.stream.index] = max(end, ends.get(packet.stream.index, end))
    except av.error.FFmpegError as error:
        raise HfdError(
            f"is damaged ({error})", file=path, remedy="Deliver the video again"
        ) from error
    return ends


def _refuse_truncated(container: av.container.InputContainer, end: Fraction, path: Path) -> None:
    if container.duration is None:
        return
    promised = Fraction(container.duration, av.time_base)
    if promised - end > _TRUNCATED_S:
        raise HfdError(
            f"ends at {float(end):.2f} s, but its header promises {float(promised):.2f} s",
            file=path,
            remedy="The file is cut short: deliver it again",
        )


def _refuse_hdr(stream: av.VideoStream, path: Path) -> None:
    transfer = _HDR.get(stream.codec_context.color_trc)
    if transfer:
        raise HfdError(
            f"is HDR video, {transfer}",
            file=path,
            remedy="Deliver an SDR version; what tone mapping looks right is not ours to decide",
        )
