"""The grid of a second's frames: geometry of every count that a file can end with."""

import numpy as np
import pytest
from PIL import Image

from hfd.models.minicpmo.frames import BACKGROUND, LINE, arrange, grid


def plain(colour: int, width: int = 480, height: int = 270) -> Image.Image:
    return Image.new("RGB", (width, height), (colour, 0, 0))


def test_four_frames_are_two_by_two_in_reading_order_with_lines_between():
    made = grid([plain(n) for n in (10, 20, 30, 40)])
    assert made.size == (2 * 480 + 6, 2 * 270 + 6)
    pixels = np.asarray(made)
    assert [pixels[y, x, 0] for y, x in ((0, 0), (0, 965), (545, 0), (545, 965))] == [
        10,
        20,
        30,
        40,
    ]
    assert (pixels[:, 480:486] == LINE).all() and (pixels[270:276] == LINE).all()
    assert pixels[0, 479, 0] == 10 and pixels[0, 486, 0] == 20


@pytest.mark.parametrize(
    "count, size, wanted",
    [
        (1, (480, 270), (480, 270)),
        (2, (480, 270), (480, 546)),  # a column is nearer to a square
        (2, (270, 480), (546, 480)),
        (3, (480, 270), (480, 822)),
        (3, (200, 600), (612, 600)),
        (4, (270, 480), (546, 966)),
    ],
)
def test_fewer_frames_are_a_row_or_a_column(count, size, wanted):
    assert grid([plain(9, *size)] * count).size == wanted


def test_a_smaller_frame_is_enlarged_and_centred_on_white():
    pixels = np.asarray(grid([plain(10, 100, 200), plain(20, 50, 50), *[plain(30, 100, 200)] * 2]))
    cell = pixels[:200, 106:]
    assert (cell[:50] == BACKGROUND).all() and (cell[150:] == BACKGROUND).all()
    assert (cell[50:150, :, 0] == 20).all()


def test_a_second_is_its_first_frame_and_a_grid_of_all_others():
    frames = [plain(n) for n in range(5)]
    first, others = arrange(frames)
    assert first is frames[0] and others.size == (966, 546)
    assert [len(arrange(frames[:count])) for count in range(6)] == [0, 1, 2, 2, 2, 2]
