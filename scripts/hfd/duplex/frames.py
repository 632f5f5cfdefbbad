"""Which video frames a model takes: a rule that is data, carried out in one place.

The session applies the rule, hands the chosen frames to the model as `Unit.taken` and writes their
numbers into the trace. A frame from the future is never chosen.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from hfd.duplex.units import Frame, Unit


@dataclass(frozen=True)
class FrameSize:
    """How large a frame is sent.

    Attributes:
        bound: what is limited: the longer side, the shorter side, or the number of pixels.
        pixels: to how many pixels.
        enlarge: whether a smaller frame is enlarged to it.
    """

    bound: Literal["long_side", "short_side", "area"]
    pixels: int
    enlarge: bool = False


@dataclass(frozen=True)
class FrameRule:
    """Which frames of a 5 fps file a model takes, and as what.

    In every period there is a slot at each offset; a slot takes the newest frame that is not later
    than the slot, and belongs to the unit in which it lies. Without a period every frame is taken.

    Attributes:
        period: samples at 16 kHz from one period to the next, exact; None: every frame.
        offsets: samples from a period's start to each of its slots, ascending, below `period`.
        again: whether a slot takes a frame again that an earlier one took, where there is no newer
            (after the file's end too, within the last unit); else it stays empty.
        size: the size in which frames are sent; None: their own.
        jpeg_quality: 1 to 100 where frames are sent as JPEG, else None.
        layout: how a unit's frames are put together, in the model's own word (``stacked``), or
            None where each is sent for itself.
    """

    period: Fraction | None = None
    offsets: tuple[int, ...] = (0,)
    again: bool = False
    size: FrameSize | None = None
    jpeg_quality: int | None = None
    layout: str | None = None

    @classmethod
    def per_second(cls, rate: Fraction | int, **more: Any) -> FrameRule:
        """`rate` frames a second, evenly spaced, the first at media time 0."""
        return cls(Fraction(16_000) / Fraction(rate), **more)

    def slots(self, start: int, end: int) -> Iterator[Fraction]:
        """Times of the slots in ``[start, end)``, in samples; needs a period."""
        if self.period is None:
            raise ValueError("a rule that takes every frame has no slots")
        turn = max(0, math.floor((start - max(self.offsets)) / self.period))
        while (begin := turn * self.period) < end:
            yield from (begin + o for o in self.offsets if start <= begin + o < end)
            turn += 1

    def record(self) -> dict[str, Any]:
        """The rule as JSON values, for provenance."""
        size = self.size and {
            "bound": self.size.bound,
            "pixels": self.size.pixels,
            "enlarge": self.size.enlarge,
        }
        return {
            "period_samples": None if self.period is None else str(self.period),
            "offsets_samples": list(self.offsets),
            "again": self.again,
            "size": size,
            "jpeg_quality": self.jpeg_quality,
            "layout": self.layout,
        }


EVERY_FRAME = FrameRule()


class FrameChooser:
    """Carries out a rule over one file; call `take` for every unit, in order."""

    def __init__(self, rule: FrameRule | None) -> None:
        self._rule = rule
        self._newest: Frame | None = None
        self._last_taken = -1

    def take(self, unit: Unit) -> tuple[Frame, ...]:
        """The frames that the model takes of this unit, one for each slot that has one."""
        if self._rule is None:
            return ()
        if self._rule.period is None:
            return unit.frames
        known = [*([self._newest] if self._newest else []), *unit.frames]
        if known:
            self._newest = known[-1]
        taken = []
        samples = len(unit.pcm) if self._rule.again else unit.valid_samples
        for slot in self._rule.slots(unit.start, unit.start + samples):
            frame = next((f for f in reversed(known) if f.pts_samples <= slot), None)
            if frame and (self._rule.again or frame.index > self._last_taken):
                taken.append(frame)
                self._last_taken = frame.index
        return tuple(taken)


def with_frames_taken(units: Iterable[Unit], rule: FrameRule | None) -> Iterator[Unit]:
    """A file's units, in order, with the frames that a model of this rule takes."""
    chooser = FrameChooser(rule)
    for unit in units:
        yield replace(unit, taken=chooser.take(unit))
