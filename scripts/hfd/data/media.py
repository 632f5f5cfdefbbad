"""Opening media files with PyAV, and what every reader of them must get right."""

from __future__ import annotations

from pathlib import Path

import av
import numpy as np

from hfd.errors import HfdError

_ATTACHED_PICTURE = 0x0400
"""FFmpeg's AV_DISPOSITION_ATTACHED_PIC: a cover image, no video."""


def open_media(path: Path) -> av.container.InputContainer:
    """Open a media file; ``file:`` and an absolute path keep odd names from being read as URLs.

    Raises:
        HfdError: the file cannot be opened as media.
    """
    try:
        return av.open(f"file:{Path(path).absolute()}", metadata_errors="replace")
    except (av.error.FFmpegError, OSError, ValueError) as error:
        raise HfdError(
            f"cannot be read as a video ({error})",
            file=path,
            remedy="The file is damaged or no video: deliver it again",
        ) from error


def picture_stream(container: av.container.InputContainer, path: Path) -> av.VideoStream:
    """The file's picture stream, cover images aside.

    Raises:
        HfdError: there is none whose codec is known.
    """
    for stream in container.streams.video:
        if stream.codec_context and not stream.disposition.value & _ATTACHED_PICTURE:
            return stream
    raise HfdError("has no picture stream", file=path, remedy="Deliver a file with video")


def to_int16(pcm: np.ndarray) -> np.ndarray:
    """Float samples in [-1, 1] as int16; exact for samples that came from int16."""
    return np.clip(np.rint(pcm * 32768.0), -32768, 32767).astype("<i2")


def to_float32(samples: np.ndarray) -> np.ndarray:
    """Decoded samples of any integer or float type as float32 in [-1, 1]."""
    if samples.dtype.kind == "f":
        return samples.astype(np.float32, copy=False)
    return (samples / float(-np.iinfo(samples.dtype).min)).astype(np.float32)
