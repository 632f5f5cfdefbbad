"""Which of the file's pictures are sent, and as what."""

from __future__ import annotations

import math
from fractions import Fraction

import av

from hfd.duplex.units import Frame
from hfd.media_time import FPS
from hfd.video_frames import ONE_THREAD

JPEG_QUANTISER = 2
"""FFmpeg's scale from 1 (best) to 31; 2 is visually lossless."""


def is_taken(index: int, rate: Fraction) -> bool:
    """Whether picture `index` of a 5 fps file is one of `rate` pictures a second.

    Slot j of the rate takes the newest picture that exists at ``j / rate``: number
    ``floor(5 j / rate)``. Never one from the future, and no rounding: 1 fps takes pts 0, 1, 2, …
    """
    step = rate / FPS
    return math.ceil((index + 1) * step) > math.ceil(index * step)


def jpeg(frame: Frame) -> bytes:
    """The picture as a baseline JPEG in its own size."""
    rgb = av.VideoFrame.from_ndarray(frame.rgb, format="rgb24")
    picture = rgb.reformat(format="yuvj420p", threads=ONE_THREAD)
    encoder = av.CodecContext.create("mjpeg", "w")
    encoder.width, encoder.height, encoder.pix_fmt = picture.width, picture.height, "yuvj420p"
    encoder.time_base = Fraction(1, FPS)
    encoder.thread_count = ONE_THREAD
    encoder.qmin = encoder.qmax = JPEG_QUANTISER
    return b"".join(bytes(packet) for packet in [*encoder.encode(picture), *encoder.encode(None)])
