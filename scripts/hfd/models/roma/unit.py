"""One second of media as ROMA sees it: two video frames, 100 mel frames, one block of positions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from PIL import Image

from hfd.duplex.frames import FrameRule, FrameSize
from hfd.duplex.units import Frame, Unit
from hfd.errors import HfdError
from hfd.media_time import SAMPLE_RATE

UNIT_SAMPLES = SAMPLE_RATE
FRAME_RULE = FrameRule(
    Fraction(UNIT_SAMPLES), (0, 6400), again=True, size=FrameSize("area", 65_536)
)
"""Two frames a second, at k and k + 0.4 s (frames 5k and 5k+2), the last one again at the end."""
MAX_PIXELS = 65_536
MIN_PIXELS = 56 * 56
PATCH = 14
MERGED_PATCH = 2 * PATCH
IMAGE_MEAN = np.array([0.48145466, 0.4578275, 0.40821073], np.float32)
IMAGE_STD = np.array([0.26862954, 0.26130258, 0.27577711], np.float32)
NORMALISED = torch.from_numpy(
    (np.arange(256, dtype=np.float32)[:, None] / 255 - IMAGE_MEAN) / IMAGE_STD
)
"""What each of the 256 values becomes in each channel, float32 [256, 3]."""
AUDIO_TOKENS = 25
"""Tokens that 100 mel frames become."""
MARKS = 4
"""Tokens that open and close a unit's video frames and sound."""
POSITIONS_PER_UNIT = AUDIO_TOKENS + 2


@dataclass(frozen=True)
class Grid:
    """Size of a unit's video frame in vision tokens (patches of 28 x 28 pixels)."""

    height: int
    width: int

    @property
    def tokens(self) -> int:
        return self.height * self.width


def two_frames(unit: Unit) -> tuple[Frame, Frame]:
    """The two frames that `FRAME_RULE` chose for this second.

    Raises:
        HfdError: there is no frame yet.
    """
    if len(unit.taken) != 2:
        raise HfdError(
            f"has no video frame in its first second (unit {unit.index})",
            remedy="ROMA needs video; compile the sample with its frames",
        )
    return unit.taken[0], unit.taken[1]


def target_sizes(width: int, height: int) -> list[tuple[int, int]]:
    """The sizes (width, height) to which a video frame is resized, one after the other.

    First ROMA's cap of 65 536 pixels with a floor of 28 pixels a side, then Qwen2-VL's rounding to
    multiples of 28. Two resizes are not one: each is bicubic and rounds to 8 bits.

    Raises:
        HfdError: the video frame is more than 200 times as long as it is wide.
    """
    if max(width, height) > 200 * min(width, height):
        raise HfdError(
            f"frame is {width} x {height} pixels, more than 200:1",
            remedy="Crop the video; the vision encoder takes no such shape",
        )
    sizes = []
    if width * height > MAX_PIXELS:
        factor = math.sqrt(MAX_PIXELS / (width * height))
        width, height = int(width * factor), int(height * factor)
        sizes.append((width, height))
    if min(width, height) < MERGED_PATCH:
        width, height = max(width, MERGED_PATCH), max(height, MERGED_PATCH)
        sizes.append((width, height))
    rounded = [round(side / MERGED_PATCH) * MERGED_PATCH for side in (width, height)]
    if rounded[0] * rounded[1] < MIN_PIXELS:
        factor = math.sqrt(MIN_PIXELS / (width * height))
        rounded = [
            math.ceil(side * factor / MERGED_PATCH) * MERGED_PATCH for side in (width, height)
        ]
    sizes.append((rounded[0], rounded[1]))
    return sizes


def frame_grid(width: int, height: int) -> Grid:
    """The grid that video frames of this size become."""
    final_width, final_height = target_sizes(width, height)[-1]
    return Grid(final_height // MERGED_PATCH, final_width // MERGED_PATCH)


def resize(rgb: np.ndarray) -> np.ndarray:
    """Resize a uint8 video frame [height, width, 3] as ROMA's preprocessing does."""
    image = Image.fromarray(rgb)
    for size in target_sizes(image.width, image.height):
        if image.size != size:
            image = image.resize(size, Image.Resampling.BICUBIC)
    return np.asarray(image)


def resize_all(frames: Sequence[np.ndarray]) -> torch.Tensor:
    """Video frames of one size resized, uint8 [frames, new height, new width, 3]."""
    return torch.from_numpy(np.stack([resize(frame) for frame in frames]))


def patchify(pixels: torch.Tensor) -> tuple[torch.Tensor, Grid]:
    """Two resized video frames as one temporal patch, on their device.

    Args:
        pixels: uint8 [2, height, width, 3], sides multiples of 28.

    Returns:
        Float32 rows [4 * grid.tokens, 1176], each one patch as (channel, time, y, x), ordered
        (row, column) of merged patches, then (row, column) of the four patches in each.
    """
    grid = Grid(pixels.shape[1] // MERGED_PATCH, pixels.shape[2] // MERGED_PATCH)
    split = pixels.reshape(2, grid.height, 2, PATCH, grid.width, 2, PATCH, 3)
    rows = split.permute(1, 4, 2, 5, 7, 0, 3, 6).reshape(4 * grid.tokens, 3, -1).long()
    table = NORMALISED.to(pixels.device)
    values = [table[:, channel].take(rows[:, channel]) for channel in range(3)]
    return torch.cat(values, dim=1), grid


def log_mel(extractor: Callable[..., Any], pcm: np.ndarray) -> torch.Tensor:
    """Whisper's log-mel of one second alone, float32 [128, 100] (its floor is the second's own)."""
    found = extractor(pcm, sampling_rate=SAMPLE_RATE, padding="do_not_pad", return_tensors="pt")
    return found["input_features"][0]


def unit_positions(start: int, grid: Grid) -> torch.Tensor:
    """Position ids (time, height, width) of one unit, int64 [3, grid.tokens + 29].

    The two opening tokens share `start`; frames and sound both begin one later; the two closing
    tokens share the position after the last audio token. This is chunked TMRoPE, and equal to
    upstream's `get_rope_index` with the unit as one audio-in-video.
    """
    first = start + 1
    rows = torch.arange(grid.height).repeat_interleave(grid.width) + first
    columns = torch.arange(grid.width).repeat(grid.height) + first
    vision = torch.stack([torch.full_like(rows, first), rows, columns])
    sound = (torch.arange(AUDIO_TOKENS) + first).expand(3, -1)
    opening = torch.full((3, 2), start)
    closing = torch.full((3, 2), first + AUDIO_TOKENS)
    return torch.cat([opening, vision, sound, closing], dim=1)


def text_positions(start: int, count: int) -> torch.Tensor:
    """Position ids of plain text, int64 [3, count]."""
    return (torch.arange(count) + start).expand(3, -1)
