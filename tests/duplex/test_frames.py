"""Which frames a rule chooses, over every way of cutting a file into units."""

from fractions import Fraction

import av
import numpy as np
import pytest

from hfd.duplex.frames import FrameRule, FrameSize, with_frames_taken
from hfd.duplex.units import Frame, Unit

BLANK = av.VideoFrame(16, 16, "yuv420p")


def cut(frames, unit_samples):
    """A file of so many 5 fps frames, as units; the last one is filled up."""
    total = frames * 3200
    for index, start in enumerate(range(0, total, unit_samples)):
        end = start + unit_samples
        held = [Frame(n, BLANK) for n in range(frames) if start <= n * 3200 < end]
        valid = min(unit_samples, total - start)
        pcm = np.zeros(unit_samples, np.float32)
        yield Unit(index, start, pcm, tuple(held), valid, end >= total)


def taken(rule, frames, unit_samples):
    units = with_frames_taken(cut(frames, unit_samples), rule)
    return [[frame.index for frame in unit.taken] for unit in units]


@pytest.mark.parametrize("rate, expected", [
    (1, [0, 5, 10]),
    (2, [0, 2, 5, 7, 10, 12]),
    (5, list(range(15))),
    (Fraction(1, 2), [0, 10]),
    (Fraction(5, 3), [0, 3, 6, 9, 12]),
])  # fmt: skip
@pytest.mark.parametrize("unit_samples", [320, 1280, 7680, 16000, 48000])
def test_a_rate_takes_the_newest_frame_of_each_slot_however_the_file_is_cut(
    rate, expected, unit_samples
):
    chosen = taken(FrameRule.per_second(rate), 15, unit_samples)
    assert [index for unit in chosen for index in unit] == expected


def test_a_slot_at_a_units_start_takes_the_frame_that_began_before_it():
    # 480 ms slices, one frame in four of them: starts 0, 1.92, 3.84 s lie in frames 0, 9, 19
    chosen = taken(FrameRule(Fraction(4 * 7680)), 20, 7680)
    assert chosen[0] == [0] and chosen[4] == [9] and chosen[8] == [19]
    assert sum(map(len, chosen)) == 3


def test_no_frame_is_from_the_future():
    rule = FrameRule(Fraction(5000), (0, 1700))
    for unit in with_frames_taken(cut(40, 2048), rule):
        slots = list(rule.slots(unit.start, unit.start + 2048))
        for frame in unit.taken:
            assert any(frame.pts_samples <= slot < frame.pts_samples + 3200 for slot in slots)


def test_a_slot_after_the_last_frame_is_empty_unless_frames_may_be_taken_again():
    offsets = (0, 6400)
    assert taken(FrameRule(Fraction(16000), offsets), 6, 16000) == [[0, 2], [5]]
    assert taken(FrameRule(Fraction(16000), offsets, again=True), 6, 16000) == [[0, 2], [5, 5]]


def test_every_frame_and_none():
    assert taken(FrameRule(), 7, 16000) == [[0, 1, 2, 3, 4], [5, 6]]
    assert taken(None, 7, 16000) == [[], []]


def test_the_record_is_exact():
    rule = FrameRule.per_second(3, size=FrameSize("long_side", 784), jpeg_quality=85)
    assert rule.record() == {
        "period_samples": "16000/3",
        "offsets_samples": [0],
        "again": False,
        "size": {"bound": "long_side", "pixels": 784, "enlarge": False},
        "jpeg_quality": 85,
        "layout": None,
    }
