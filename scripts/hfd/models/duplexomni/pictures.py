"""Which picture goes with which slice, and its JPEG."""

from __future__ import annotations

import io
from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass

import numpy as np
from av.video.reformatter import Interpolation
from PIL import Image

from hfd.duplex.units import Frame, Unit
from hfd.media_time import PICTURE_SAMPLES
from hfd.models.duplexomni.context import picture_size
from hfd.video_frames import ONE_THREAD


@dataclass(frozen=True)
class Picture:
    """A picture on its way to the thinker.

    Attributes:
        index: its number in the file.
        jpeg: its JPEG, being made.
    """

    index: int
    jpeg: Future[bytes]


class PictureFeed:
    """One picture in `interval` slices: the last whose pts is not after the slice's start.

    It may lie in an earlier slice, never in the future of the slice's first sample. Where it is
    known one slice ahead, its JPEG is made in `pool` while the servers work.
    """

    def __init__(self, interval: int, encode: Callable[[Frame], bytes], pool: Executor) -> None:
        self._interval = interval
        self._encode = encode
        self._pool = pool
        self._last: Frame | None = None
        self._ahead: Picture | None = None

    def take(self, unit: Unit) -> Picture | None:
        """The picture of this slice; call it for every slice, in order."""
        picked = None
        if unit.index % self._interval == 0:
            at_start = [frame for frame in unit.frames if frame.pts_samples <= unit.start]
            if at_start:
                self._ahead = self._start(at_start[-1])
            picked, self._ahead = self._ahead, None
        if unit.frames:
            self._last = unit.frames[-1]
        self._look_ahead(unit)
        return picked

    def _look_ahead(self, unit: Unit) -> None:
        """Begin the next slice's JPEG, unless a picture falls exactly on that slice's start."""
        next_start = unit.start + len(unit.pcm)
        due = (unit.index + 1) % self._interval == 0
        if due and not unit.is_last and next_start % PICTURE_SAMPLES and self._last is not None:
            self._ahead = self._start(self._last)

    def _start(self, frame: Frame) -> Picture:
        return Picture(frame.index, self._pool.submit(self._encode, frame))


def jpeg(frame: Frame, short_side: int, quality: int) -> bytes:
    """The picture as JPEG, scaled (up too) so that its short side has `short_side` pixels.

    Scaled in the colours it is stored in, which a JPEG keeps: a third of the time of going
    through RGB.
    """
    stored = frame.picture
    width, height = picture_size(stored.width, stored.height, short_side)
    scaled = stored.reformat(
        width=width,
        height=height,
        format="yuvj444p",
        interpolation=Interpolation.LANCZOS,
        threads=ONE_THREAD,
    )
    planes = np.rot90(scaled.to_ndarray(), stored.rotation // 90, axes=(1, 2))  # upright
    image = Image.merge("YCbCr", [Image.fromarray(np.ascontiguousarray(plane)) for plane in planes])
    out = io.BytesIO()
    image.save(out, format="JPEG", quality=quality)
    return out.getvalue()
