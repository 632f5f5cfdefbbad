"""Pillow's bicubic resize as matrix products, equal to it in every bit.

Pillow resizes 8-bit frames in whole numbers: each output value is a sum of pixels times weights
of 22 binary places, rounded and cut to 0..255, along one side and then along the other. Float64
holds such sums exactly, in any order, so a GPU can do in a millisecond what costs a CPU ten.
Which side comes first is Pillow's choice, which differs between its versions: it is found by trial.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from PIL import Image

SUPPORT = 2.0
"""Half the width of the bicubic kernel, in output pixels where frames shrink, else in their own."""
SHARPNESS = -0.5
ONE = 1 << 22
"""The weight 1."""
Plan = tuple[tuple[tuple[int, int], bool], ...]
"""The sizes (width, height) to go through, and whether the height comes first."""


def resize_exactly(frames: torch.Tensor, plan: Plan) -> torch.Tensor:
    """Video frames resized as Pillow does, without it.

    Args:
        frames: uint8 [frames, height, width, 3], on any device.
        plan: of `find_plan` for their size and the new one.

    Returns:
        uint8 [frames, new height, new width, 3] on the same device.
    """
    pixels = frames.permute(0, 3, 1, 2).double()
    for size, height_first in plan:
        pixels = _resize(pixels, size, height_first)
    return pixels.permute(0, 2, 3, 1).to(torch.uint8)


@cache
def find_plan(width: int, height: int, *sizes: tuple[int, int]) -> Plan | None:
    """How to resize frames of this size, tried on noise; None if Pillow does something else.

    Args:
        width, height: of a frame.
        sizes: its new widths and heights, one after the other.
    """
    noise = np.random.default_rng(0).integers(0, 2, (height, width, 3), dtype=np.uint8) * 255
    frame, plan = Image.fromarray(noise), []
    for size in sizes:
        pixels = torch.from_numpy(np.array(frame)).permute(2, 0, 1)[None].double()
        if frame.size != size:
            frame = frame.resize(size, Image.Resampling.BICUBIC)
        wanted = torch.from_numpy(np.array(frame)).permute(2, 0, 1)[None]
        fits = [
            first for first in (False, True) if _resize(pixels, size, first).equal(wanted.double())
        ]
        if not fits:
            return None
        plan.append((size, fits[0]))
    return tuple(plan)


def _resize(pixels: torch.Tensor, size: tuple[int, int], height_first: bool) -> torch.Tensor:
    """Whole numbers 0..255 [frames, 3, height, width] in a new size (width, height)."""
    for down in (height_first, not height_first):
        if down:
            pixels = _along(pixels.transpose(2, 3), size[1]).transpose(2, 3)
        else:
            pixels = _along(pixels, size[0])
    return pixels


def _along(pixels: torch.Tensor, size: int) -> torch.Tensor:
    """Resize the last dimension."""
    before = pixels.shape[-1]
    if before == size:
        return pixels
    sums = pixels @ _weights_on(before, size, pixels.device)
    return ((sums + ONE // 2) / ONE).floor().clamp(0, 255)


@cache
def _weights_on(before: int, after: int, device: torch.device) -> torch.Tensor:
    return torch.from_numpy(resize_weights(before, after)).to(device)


def resize_weights(before: int, after: int) -> np.ndarray:
    """Whole-number weights of a side's pixels in each new one, float64 [before, after]."""
    scale = before / after
    shrink = max(scale, 1.0)
    centres = (np.arange(after) + 0.5) * scale
    first = np.maximum(np.trunc(centres - SUPPORT * shrink + 0.5), 0)
    end = np.minimum(np.trunc(centres + SUPPORT * shrink + 0.5), before)
    places = np.arange(before)[:, None]
    weights = _bicubic((places - centres + 0.5) * (1.0 / shrink))
    weights[(places < first) | (places >= end)] = 0
    weights /= weights.cumsum(axis=0)[-1]  # added up in order, as Pillow does
    return np.trunc(weights * ONE + np.where(weights < 0, -0.5, 0.5))


def _bicubic(x: np.ndarray) -> np.ndarray:
    x, a = np.abs(x), SHARPNESS
    near = ((a + 2) * x - (a + 3)) * x * x + 1
    far = (((x - 5) * x + 8) * x - 4) * a
    return np.where(x < 1, near, np.where(x < 2, far, 0.0))
