"""Video frames within a service's limit of bytes."""

from __future__ import annotations

from hfd.duplex.frames import FrameSize
from hfd.duplex.units import Frame
from hfd.errors import HfdError
from hfd.models.media import jpeg

QUALITY = 90
"""JPEG quality of a frame that no limit makes smaller."""
STEPS: tuple[tuple[int, int | None], ...] = (
    *((quality, None) for quality in (QUALITY, 75, 60, 45)),
    *((60, pixels) for pixels in (1280, 960, 640, 320)),
)
"""Quality and longer side (None: its own), tried in order where the bytes are limited."""


def jpeg_within(frame: Frame, max_bytes: int | None) -> tuple[bytes, dict[str, int | None]]:
    """The best JPEG that the limit allows, and how it was made.

    Raises:
        HfdError: none is small enough.
    """
    for quality, pixels in STEPS:
        size = FrameSize("long_side", pixels) if pixels else None
        data = jpeg(frame, quality, size)
        if max_bytes is None or len(data) <= max_bytes:
            return data, {"frame": frame.index, "quality": quality, "long_side": pixels}
    raise HfdError(f"frame {frame.index} does not fit into {max_bytes} bytes as a JPEG")
