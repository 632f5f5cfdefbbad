"""Video frames as models are sent them: size and JPEG, in one place."""

from __future__ import annotations

import io
import math

from PIL import Image

from hfd.duplex.frames import FrameSize
from hfd.duplex.units import Frame


def sent_size(width: int, height: int, size: FrameSize | None) -> tuple[int, int]:
    """Width and height in which a frame of that size is sent; the free side is rounded down."""
    if size is None:
        return width, height
    long, short = max(width, height), min(width, height)
    match size.bound:
        case "long_side":
            factor = size.pixels / long
            bound = (size.pixels, int(size.pixels * short / long))
        case "short_side":
            factor = size.pixels / short
            bound = (int(size.pixels * long / short), size.pixels)
        case "area":
            factor = math.sqrt(size.pixels / (width * height))
            bound = (int(long * factor), int(short * factor))
    if factor > 1 and not size.enlarge:
        return width, height
    longer, shorter = bound[0], max(1, bound[1])
    return (longer, shorter) if width >= height else (shorter, longer)


def jpeg(frame: Frame, quality: int, size: FrameSize | None = None) -> bytes:
    """The frame, upright, as a baseline JPEG (4:2:0).

    Args:
        frame: a decoded frame.
        quality: 1 to 100, libjpeg's scale.
        size: in which it is sent, scaled with Lanczos; None: its own.
    """
    image = Image.fromarray(frame.rgb)
    wanted = sent_size(*image.size, size)
    if wanted != image.size:
        image = image.resize(wanted, Image.Resampling.LANCZOS)
    out = io.BytesIO()
    image.save(out, format="JPEG", quality=quality)
    return out.getvalue()


def grey_jpeg(width: int, height: int) -> bytes:
    """A video frame of nothing, for warming a server up."""
    out = io.BytesIO()
    Image.new("RGB", (width, height), (128, 128, 128)).save(out, format="JPEG")
    return out.getvalue()
