"""Decoded video frames: their upright RGB form, and the digest by which they are known."""

from __future__ import annotations

import hashlib

import av
import numpy as np

ONE_THREAD = 1
"""Threads of a conversion. The default starts one per core, for every frame anew: on machines of
many cores that takes far longer than the conversion."""


def upright_rgb(frame: av.VideoFrame) -> np.ndarray:
    """The frame as it is meant to be seen: uint8, shape [height, width, 3], rotation applied."""
    rgb = frame.reformat(format="rgb24", threads=ONE_THREAD).to_ndarray()
    return np.ascontiguousarray(np.rot90(rgb, frame.rotation // 90)) if frame.rotation else rgb


def video_frame_digest(frame: av.VideoFrame) -> bytes:
    """SHA-256 (32 bytes) of the video frame's yuv420p planes as they are stored.

    Taken before colour conversion and rotation, which differ between library versions.
    """
    stored = frame.reformat(format="yuv420p", threads=ONE_THREAD)
    digest = hashlib.sha256()
    for plane in stored.planes:  # without a copy where rows lie side by side, as they mostly do
        rows = np.frombuffer(memoryview(plane), np.uint8).reshape(-1, plane.line_size)
        digest.update(np.ascontiguousarray(rows[: plane.height, : plane.width]).data)
    return digest.digest()
