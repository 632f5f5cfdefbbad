"""One second of media: video frames, sizes, patches, sound."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from hfd.duplex.frames import with_frames_taken
from hfd.errors import HfdError
from hfd.models.resize import find_plan, resize_exactly
from hfd.models.roma import unit as units
from tests.models.roma.helpers import make_units

pytestmark = pytest.mark.heavy


def test_frames_are_taken_at_the_second_and_0_4_s_later():
    for unit in make_units(3, width=64, height=64):
        picked = units.two_frames(unit)
        assert [f.index for f in picked] == [5 * unit.index, 5 * unit.index + 2]


@pytest.mark.parametrize("pictures, expected", [(1, [5, 5]), (2, [5, 6]), (3, [5, 7]), (4, [5, 7])])
def test_a_short_last_second_repeats_its_newest_frame(pictures, expected):
    short = make_units(2, width=64, height=64, pictures=pictures)[1]
    whole = make_units(1, width=64, height=64)[0]
    *_, last = with_frames_taken([whole, replace(short, taken=())], units.FRAME_RULE)
    assert [f.index for f in units.two_frames(last)] == expected


def test_a_second_without_frames_shows_the_last_one_before_it():
    whole = make_units(1, width=64, height=64)[0]
    empty = make_units(2, width=64, height=64, pictures=0)[1]
    *_, second = with_frames_taken([whole, empty], units.FRAME_RULE)
    assert [f.index for f in units.two_frames(second)] == [4, 4]
    with pytest.raises(HfdError, match="no video frame"):
        units.two_frames(empty)


@pytest.mark.parametrize(
    "size, steps, tokens",
    [
        ((1920, 1080), [(341, 192), (336, 196)], 84),
        ((1280, 720), [(341, 192), (336, 196)], 84),
        ((640, 480), [(295, 221), (308, 224)], 88),
        ((720, 720), [(256, 256), (252, 252)], 81),
        ((720, 1280), [(192, 341), (196, 336)], 84),
        ((101, 75), [(112, 84)], 12),
        ((20, 30), [(28, 30), (56, 84)], 6),
    ],
)
def test_sizes_follow_roma_then_qwen(size, steps, tokens):
    assert units.target_sizes(*size) == steps
    assert units.frame_grid(*size).tokens == tokens


def test_a_strip_is_refused():
    with pytest.raises(HfdError, match="200:1"):
        units.target_sizes(4040, 20)


@pytest.mark.parametrize(
    "size", [(1280, 720), (640, 480), (320, 180), (180, 320), (255, 201), (20, 30), (64, 64)]
)
def test_pictures_resized_without_pillow_equal_pillow_in_every_bit(size):
    random = np.random.default_rng(1)
    for low, high in ((0, 256), (100, 130)):
        pictures = random.integers(low, high, (2, size[1], size[0], 3), dtype=np.uint8)
        plan = find_plan(*size, *units.target_sizes(*size))
        assert plan is not None
        got = resize_exactly(torch.from_numpy(pictures), plan)
        assert torch.equal(got, units.resize_all(pictures))


def test_each_patch_row_holds_the_pixels_of_its_place():
    random = np.random.default_rng(0)
    pictures = [random.integers(0, 256, (56, 84, 3), dtype=np.uint8) for _ in range(2)]
    rows, grid = units.patchify(torch.from_numpy(np.stack(pictures)))
    assert (grid.height, grid.width, rows.shape) == (2, 3, (24, 1176))
    # Merged patch (1, 2), lower left patch in it: row offset 14, column offset 0.
    row = rows[4 * (1 * 3 + 2) + 2].reshape(3, 2, 14, 14).numpy()
    for channel in range(3):
        for moment in range(2):
            pixels = pictures[moment][42:56, 56:70, channel] / np.float32(255)
            wanted = (pixels - units.IMAGE_MEAN[channel]) / units.IMAGE_STD[channel]
            assert np.allclose(row[channel, moment], wanted, atol=1e-6)


def test_sound_is_featurised_per_second_and_silence_stays_silent(parts):
    mel = units.log_mel(parts.mel, np.zeros(16_000, np.float32))
    assert mel.shape == (128, 100)
    assert float(mel.min()) == float(mel.max()) == -1.5
    padded = parts.mel(
        make_units(1)[0].pcm,
        sampling_rate=16_000,
        padding="max_length",
        max_length=16_000,
        return_tensors="pt",
    )["input_features"][0]
    assert np.array_equal(units.log_mel(parts.mel, make_units(1)[0].pcm), padded)
