"""The video frame of a slice on its way to the thinker, and to S2 in its own size."""

from __future__ import annotations

from concurrent.futures import Executor, Future
from dataclasses import dataclass
from fractions import Fraction

from hfd.duplex.frames import FrameRule, FrameSize
from hfd.duplex.units import Frame, Unit
from hfd.models.duplexomni.context import SLICE_SAMPLES
from hfd.models.duplexomni.settings import Settings
from hfd.models.media import jpeg

S2_SIZE = FrameSize("long_side", 720, enlarge=True)
S2_JPEG_QUALITY = 95


def frame_rule(settings: Settings) -> FrameRule:
    """One frame in so many slices: the newest that is not later than the slice's start."""
    return FrameRule(
        period=Fraction(settings.picture_interval * SLICE_SAMPLES),
        size=FrameSize("long_side", settings.picture_long_side, enlarge=True),
        jpeg_quality=settings.jpeg_quality,
    )


@dataclass(frozen=True)
class SentFrame:
    """A frame on its way.

    Attributes:
        index: its number in the file.
        jpeg: what the thinker is sent, being made.
        s2_jpeg: what S2 is sent, being made; None where there is no S2.
    """

    index: int
    jpeg: Future[bytes]
    s2_jpeg: Future[bytes] | None


def frame_of(unit: Unit, settings: Settings, pool: Executor) -> SentFrame | None:
    """The frame that goes with a slice, if its turn has come; its JPEGs are made in `pool`."""
    if not unit.taken:
        return None
    frame: Frame = unit.taken[-1]
    rule = frame_rule(settings)
    assert rule.jpeg_quality is not None
    return SentFrame(
        frame.index,
        pool.submit(jpeg, frame, rule.jpeg_quality, rule.size),
        None if settings.s2 is None else pool.submit(jpeg, frame, S2_JPEG_QUALITY, S2_SIZE),
    )
