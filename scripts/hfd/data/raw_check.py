"""What compiling would say of raw rows, or of the files in a folder, without compiling them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from hfd.data.compile import try_sample
from hfd.data.encode import compiled_frames
from hfd.data.media import has_video, open_media
from hfd.data.raw import RawSample, try_raw
from hfd.data.sound import probe_recording
from hfd.data.source_video import probe_video
from hfd.data.timeline import Timeline
from hfd.errors import HfdError
from hfd.media_time import FPS


@dataclass(frozen=True)
class RawVerdict:
    """The outcome for one row or one file.

    Attributes:
        name: the sample's id, or the file.
        place: where it stands: ``manifest:line``, or the file.
        verdict: ``ok``; ``changed``: it is compiled, and `says` is what is done to it or odd about
            it; ``refused``: it is not compiled, and `says` is why.
        says: one sentence or more, empty for ``ok``.
    """

    name: str
    place: str
    verdict: Literal["ok", "changed", "refused"]
    says: str


@dataclass(frozen=True)
class Task:
    """One row or one file to look at.

    Attributes:
        name, place: as in `RawVerdict`.
        row: the row, or the error that reading it gave; None for a file.
    """

    name: str
    place: str
    row: RawSample | HfdError | None

    def run(self, full_first_question: str) -> RawVerdict:
        """Look at it; whatever compiling would raise becomes the verdict."""
        try:
            if isinstance(self.row, HfdError):
                raise self.row
            if self.row is not None:
                said = try_sample(self.row, full_first_question)
            else:
                said = try_file(Path(self.place))
        except HfdError as error:
            return RawVerdict(self.name, self.place, "refused", str(error))
        return RawVerdict(self.name, self.place, "changed" if said else "ok", "; ".join(said))


def rows_to_check(path: Path, root: Path, fields: Mapping[str, str]) -> list[Task]:
    """One task for each raw row, also for those that cannot be read.

    Raises:
        HfdError: the file is missing or has no rows, or `fields` is wrong.
    """
    return [
        Task(row.sample_id if isinstance(row, RawSample) else "", place, row)
        for place, row in try_raw(path, root, fields)
    ]


def files_to_check(folder: Path) -> list[Task]:
    """One task for each file below a folder, hidden ones aside.

    Raises:
        HfdError: there is no such folder, or no file in it.
    """
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(part.startswith(".") for part in path.parts)
    )
    if not files:
        raise HfdError("has no files", file=folder, remedy="Name the folder of the sources")
    return [Task(str(path.relative_to(folder)), str(path), None) for path in files]


def try_file(path: Path) -> list[str]:
    """What compiling changes of a source video or of a recording.

    Raises:
        HfdError: compiling would refuse the file.
    """
    if not _is_video(path):
        return probe_recording(path).changes
    source = probe_video(path)
    timeline = Timeline((), math.ceil(source.end * FPS), ())
    changes: list[str] = []
    _exhaust(compiled_frames(source, timeline, changes))
    return changes


def _is_video(path: Path) -> bool:
    try:
        with open_media(path) as container:
            return has_video(container)
    except HfdError:
        return False


def _exhaust(frames: Iterator[object]) -> None:
    for _ in frames:
        pass
