"""The judge works out by itself which frames a rule takes, and agrees with the session."""

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from hfd.duplex.frames import EVERY_FRAME, FrameRule, with_frames_taken
from hfd.duplex.units import Unit
from hfd.judge.rules.a01_input_identity import taken_by_rule


@dataclass(frozen=True)
class Picture:
    index: int

    @property
    def pts_samples(self) -> int:
        return self.index * 3200


def units_of(unit, frames):
    total = frames * 3200
    for index in range(-(-total // unit)):
        start = index * unit
        inside = range(-(-start // 3200), min(frames, -(-(start + unit) // 3200)))
        yield Unit(
            index,
            start,
            np.zeros(unit, np.float32),
            tuple(Picture(n) for n in inside),
            min(unit, total - start),
            start + unit >= total,
        )


@pytest.mark.parametrize("unit", [320, 1280, 7680, 16000])
@pytest.mark.parametrize(
    "rule",
    [
        None,
        EVERY_FRAME,
        FrameRule.per_second(1),
        FrameRule.per_second(2, again=True),
        FrameRule.per_second(Fraction(25, 12), again=True),
        FrameRule(Fraction(16_000), (0, 6_400)),
        FrameRule(Fraction(7680), (1_000,), again=True),
    ],
)
def test_the_judge_and_the_session_choose_the_same_frames(unit, rule):
    units = list(with_frames_taken(units_of(unit, 23), rule))
    lines = [
        {
            "start": one.start,
            "samples": len(one.pcm),
            "valid_samples": one.valid_samples,
            "frames": [frame.index for frame in one.frames],
        }
        for one in units
    ]
    expected = [[frame.index for frame in one.taken] for one in units]
    assert taken_by_rule(rule and rule.record(), lines) == expected
