"""Which frames of a second the model sees, and the grid that four of them become."""

from __future__ import annotations

from collections.abc import Sequence

from PIL import Image

BACKGROUND = (255, 255, 255)
LINE = (0, 0, 0)
LINE_PX = 6


def arrange(frames: Sequence[Image.Image]) -> list[Image.Image]:
    """A second's frames as the model is given them: the first, and the others in one grid.

    Args:
        frames: RGB, at most five, in order of time; may be empty.

    Returns:
        At most two images.
    """
    first, others = frames[:1], frames[1:]
    return [*first, grid(others)] if others else list(first)


def grid(images: Sequence[Image.Image]) -> Image.Image:
    """Images side by side in cells of one size, row by row, with lines only between them.

    Four become 2 x 2; two or three a row or a column, whichever is nearer to a square. Cells are as
    wide and high as the widest and the highest image; a smaller one is enlarged as far as it fits
    and centred on white.
    """
    width = max(image.width for image in images)
    height = max(image.height for image in images)
    rows, columns = _shape(len(images), width, height)
    size = (_extent(columns, width), _extent(rows, height))
    canvas = Image.new("RGB", size, LINE)
    for number, image in enumerate(images):
        row, column = divmod(number, columns)
        corner = (column * (width + LINE_PX), row * (height + LINE_PX))
        canvas.paste(_in_cell(image, width, height), corner)
    return canvas


def _shape(count: int, width: int, height: int) -> tuple[int, int]:
    """Rows and columns."""
    if count == 4:
        return 2, 2
    if count == 1:
        return 1, 1

    def distance(shape: tuple[int, int]) -> float:
        rows, columns = shape
        return abs(_extent(columns, width) / _extent(rows, height) - 1)

    return min(((1, count), (count, 1)), key=distance)


def _extent(cells: int, size: int) -> int:
    return cells * size + (cells - 1) * LINE_PX


def _in_cell(image: Image.Image, width: int, height: int) -> Image.Image:
    if image.size == (width, height):
        return image
    scale = min(width / image.width, height / image.height)
    size = max(1, round(image.width * scale)), max(1, round(image.height * scale))
    cell = Image.new("RGB", (width, height), BACKGROUND)
    corner = ((width - size[0]) // 2, (height - size[1]) // 2)
    cell.paste(image.resize(size, Image.Resampling.BICUBIC), corner)
    return cell
