"""The mark in a compiled file that says it has its 3 s tail, so that nobody adds another."""

from __future__ import annotations

import re
from dataclasses import dataclass

from hfd.media_time import PAD_VIDEO_FRAMES


@dataclass(frozen=True)
class Stamp:
    """The file's ``comment`` tag.

    Attributes:
        body: video frames before the tail.
        frames: all video frames.
    """

    body: int
    frames: int

    @classmethod
    def for_body(cls, body: int) -> Stamp:
        """The stamp of a file with `body` video frames and the 3 s tail."""
        return cls(body, body + PAD_VIDEO_FRAMES)

    @classmethod
    def parse(cls, comment: str) -> Stamp | None:
        """The stamp in a comment, or None if there is none."""
        found = re.fullmatch(r"hfd_pad=3\.000;body=(\d+);frames=(\d+)", comment)
        return cls(int(found[1]), int(found[2])) if found else None

    def __str__(self) -> str:
        return f"hfd_pad=3.000;body={self.body};frames={self.frames}"
