"""Any decoded video frame as a compiled file has it: upright, even size, 8 bit, limited range."""

from __future__ import annotations

import math
import struct
from fractions import Fraction
from itertools import pairwise
from typing import Any

import av
from av.filter import Graph

from hfd.errors import HfdError

_FLAGS = "bicubic+accurate_rnd+full_chroma_int+bitexact"
_FULL_RANGE = 2
"""FFmpeg's AVCOL_RANGE_JPEG."""
_TURNS = {
    (1, 0, 0, 1): (),
    (-1, 0, 0, -1): ("hflip", "vflip"),
    (-1, 0, 0, 1): ("hflip",),
    (1, 0, 0, -1): ("vflip",),
    (0, 1, -1, 0): ("transpose=clock",),
    (0, -1, 1, 0): ("transpose=cclock",),
    (0, 1, 1, 0): ("transpose=cclock_flip",),
    (0, -1, -1, 0): ("transpose=clock_flip",),
}
"""The signs of a display matrix's a, b, c, d, and the filters that do what it asks for."""


def describe(frame: av.VideoFrame, aspect: Fraction = Fraction(1)) -> str:
    """The frame as arguments of FFmpeg's ``buffer`` filter."""
    return (
        f"video_size={frame.width}x{frame.height}:pix_fmt={frame.format.name}:time_base=1/5:"
        f"pixel_aspect={aspect.numerator}/{aspect.denominator}:"
        f"colorspace={int(frame.colorspace)}:range={int(frame.color_range)}"
    )


def link(*filters: tuple[str, str]) -> Graph:
    """A configured chain of filters (name, arguments), one thread, from its first to a sink."""
    graph = Graph()
    graph.threads = 1
    chain = [graph.add(name, arguments) for name, arguments in filters]
    chain.append(graph.add("buffersink"))
    for one, other in pairwise(chain):
        one.link_to(other)
    graph.configure()
    return graph


class Normaliser:
    """Turns frames of one source into frames of its compiled file.

    Args:
        aspect: the source's sample aspect ratio (width of a pixel to its height).

    Attributes:
        changes: what was done to the frames, in words, each once.
    """

    def __init__(self, aspect: Fraction) -> None:
        self._aspect = aspect
        self._graphs: dict[tuple[str, tuple[str, ...]], Graph] = {}
        self.changes: list[str] = []

    def __call__(self, frame: av.VideoFrame) -> av.VideoFrame:
        """The frame in yuv420p; the frame itself if nothing is to be done.

        Raises:
            HfdError: the frame should be turned by an angle that is not a quarter.
        """
        turns = _turns(frame)
        even = frame.width % 2 == 0 and frame.height % 2 == 0
        as_is = frame.format.name == "yuv420p" and frame.color_range != _FULL_RANGE
        if as_is and even and not turns and self._aspect == 1:
            return frame
        key = (describe(frame, self._aspect), turns)
        if key not in self._graphs:
            self._graphs[key] = _conversion(key[0], turns)
        graph = self._graphs[key]
        graph.vpush(frame)
        changed = graph.vpull()
        self._note(frame, changed, turns)
        return changed

    def _note(self, old: av.VideoFrame, new: av.VideoFrame, turns: tuple[str, ...]) -> None:
        said = []
        if turns:
            said.append(f"turned as its display matrix says ({', '.join(turns)})")
        size = (old.height, old.width) if "transpose" in "".join(turns) else (old.width, old.height)
        if size != (new.width, new.height):
            said.append(f"scaled from {size[0]}x{size[1]} to {new.width}x{new.height}")
        if old.color_range == _FULL_RANGE or old.format.is_rgb:
            said.append("full range (0-255) to limited range (16-235)")
        if old.format.name not in ("yuv420p", "yuvj420p"):
            said.append(f"pixel format {old.format.name} to yuv420p")
        self.changes += [change for change in said if change not in self.changes]


def pixel_aspect(stream: av.VideoStream) -> Fraction:
    """The stream's sample aspect ratio; 1 where it states none."""
    return Fraction(stream.sample_aspect_ratio or 1)


def _conversion(described: str, turns: tuple[str, ...]) -> Graph:
    steps = [tuple(turn.partition("=")[::2]) for turn in turns]
    return link(
        ("buffer", described),
        *[(name, arguments) for name, arguments in steps],
        ("scale", f"w=trunc(iw*sar/2)*2:h=trunc(ih/2)*2:out_range=limited:flags={_FLAGS}"),
        ("setsar", "1"),
        ("format", "yuv420p"),
    )


def _turns(frame: av.VideoFrame) -> tuple[str, ...]:
    matrix: Any = frame.side_data.get("DISPLAYMATRIX")
    if matrix is None:
        return ()
    a, b, _, c, d = struct.unpack_from("<5i", bytes(matrix))
    scale = max(math.hypot(a, c), math.hypot(b, d), 1)
    rounded = tuple(round(value / scale) for value in (a, b, c, d))
    if rounded == (0, 0, 0, 0):
        return ()
    off = max(abs(value / scale - near) for value, near in zip((a, b, c, d), rounded, strict=True))
    if rounded not in _TURNS or off > 0.02:
        raise HfdError(
            "is to be turned by an angle that is no quarter",
            remedy="Deliver the video with its frames upright",
        )
    return _TURNS[rounded]
