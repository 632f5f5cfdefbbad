"""Opening media files with PyAV, and what every reader of them must get right."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import av

from hfd.errors import HfdError, reason

_DAMAGED_TAGS: dict[str, Any] = (
    {"metadata_errors": "replace"} if int(av.__version__.split(".")[0]) < 19 else {}
)
"""Tags that are no UTF-8 must not stop a reader; PyAV 19 has no such argument any more."""
_ATTACHED_PICTURE = 0x0400
"""FFmpeg's AV_DISPOSITION_ATTACHED_PIC: a cover image, no video."""


def open_media(path: Path) -> av.container.InputContainer:
    """Open a media file; ``file:`` and an absolute path keep odd names from being read as URLs.

    Raises:
        HfdError: the file cannot be opened as media.
    """
    try:
        container: av.container.InputContainer
        container = av.open(f"file:{Path(path).absolute()}", **_DAMAGED_TAGS)
        return container
    except (av.error.FFmpegError, OSError, ValueError) as error:
        raise HfdError(
            f"cannot be read as a video ({reason(error)})",
            file=path,
            remedy="The file is damaged or no video: deliver it again",
        ) from error


def find_video_stream(container: av.container.InputContainer, path: Path) -> av.VideoStream:
    """The file's video stream, cover images aside.

    Raises:
        HfdError: there is none whose codec is known.
    """
    videos = [stream for stream in container.streams.video if not _is_cover(stream)]
    for stream in videos:
        if stream.codec_context:
            return stream
    if videos:
        raise HfdError(
            "has video of a codec that cannot be told from the file",
            file=path,
            remedy="Deliver it as mp4",
        )
    raise HfdError("has no video stream", file=path, remedy="Deliver a file with video")


def has_video(container: av.container.InputContainer) -> bool:
    """Whether there is a video stream, cover images aside, of a known codec or not."""
    return any(not _is_cover(stream) for stream in container.streams.video)


def _is_cover(stream: av.VideoStream) -> bool:
    return bool(stream.disposition.value & _ATTACHED_PICTURE)
