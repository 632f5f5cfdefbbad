"""The list of compiled samples: data/manifest.jsonl, one JSON object a line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfd.data.fields import find_file, seconds, text
from hfd.data.ids import UniqueIds, check_id
from hfd.data.jsonl import read_rows
from hfd.errors import HfdError

HESITATION = "hesitation"
"""The task whose samples this workflow can compile; named so in `task`."""


@dataclass(frozen=True)
class Sample:
    """One compiled sample.

    Attributes:
        sample_id: unique; a good file name on every system (hfd.data.ids).
        task: name of the task, for example ``hesitation``.
        video: path of the compiled video.
        adapter: path of its adapter, or None if the row names none.
        duration_seconds: length of the video, its 3 s tail included.
        row: the whole row, unknown keys too.
        line: its line in the manifest, from 1.
    """

    sample_id: str
    task: str
    video: Path
    adapter: Path | None
    duration_seconds: float
    row: Mapping[str, Any]
    line: int


def read_manifest(path: str | Path, root: str | Path, check_files: bool = True) -> list[Sample]:
    """Read the manifest whole, in its order.

    Args:
        path: the manifest.
        root: the repository root, to which the paths in it are relative. A path that does not
            exist there is looked for beside the manifest (``videos/x.mp4`` in ``data/``).
        check_files: refuse a row whose video or adapter is not there.

    Raises:
        HfdError: with ``file:line`` and field; empty manifest, a row that is no object, bad JSON
            or encoding, an id that is empty, unfit or repeated, a path that leaves the root, a
            missing file, a duration that is no positive finite number.
    """
    path, root = Path(path), Path(root)
    unique = UniqueIds()
    return [
        _sample(line, value, path, root, unique, check_files) for line, value in read_rows(path)
    ]


def sample_id_of(value: Mapping[str, Any], place: str) -> tuple[str, str]:
    """The id of a row and the key it stands under (``sample_id`` or ``id``), checked."""
    key = "sample_id" if "sample_id" in value or "id" not in value else "id"
    if "id" in value and value[key] != value["id"]:
        raise HfdError(
            f"{value[key]!r} and id {value['id']!r} disagree",
            file=place,
            field=key,
            remedy="Keep one of the two",
        )
    if key not in value:
        raise HfdError("is missing", file=place, field=key, remedy="Give the sample an id")
    return check_id(value[key], file=place, field=key), key


def _sample(
    line: int, value: dict[str, Any], path: Path, root: Path, unique: UniqueIds, check_files: bool
) -> Sample:
    place = f"{path}:{line}"
    sample_id, key = sample_id_of(value, place)
    unique.add(sample_id, line, file=place, field=key)

    def file(field: str) -> Path:
        return find_file(
            value.get(field), root, path.parent, file=place, field=field, check=check_files
        )

    return Sample(
        sample_id=sample_id,
        task=text(value.get("task"), file=place, field="task"),
        video=file("video"),
        adapter=file("adapter") if value.get("adapter") is not None else None,
        duration_seconds=_duration(value, place),
        row=value,
        line=line,
    )


def _duration(value: Mapping[str, Any], place: str) -> float:
    field = "duration_seconds"
    duration = seconds(value.get(field), file=place, field=field)
    if duration == 0:
        raise HfdError("is 0", file=place, field=field, remedy="Write the length of the video")
    return duration
