"""Raw hesitation rows: a source video and two recorded questions, on the conversation's clock."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfd.data.adapter import FIRST_QUESTION, SECOND_QUESTION
from hfd.data.fields import find_file, kind, lookup, seconds, text
from hfd.data.ids import UniqueIds, check_id
from hfd.data.jsonl import read_rows
from hfd.errors import HfdError
from hfd.files import canonical_json, sha256_bytes

COMPILER = "hfd-compile/2"
"""Raised when the compiler's output changes; every compiled video is then stale."""

MEAN = "mean"
CHANNELS = (MEAN, "left", "right")
"""What becomes of a recording's two channels."""

DEFAULT_FIELDS = {
    "sample_id": "sample_id",
    "video": "video",
    "video_offset": "timing.video_offset",
    "inputs": "duplex.inputs",
    "role": "role",
    "audio": "audio",
    "start": "start",
    "end": "end",
    "source_start": "source_start",
    "source_end": "source_end",
    "text": "text",
    "spoken_text": "spoken_text",
    "channel": "channel",
}
"""Our names and where a raw row has them (dotted); `role` and below are inside one input; `channel`
may also stand in the row, for both."""


@dataclass(frozen=True)
class RawEvent:
    """One recorded question.

    Attributes:
        role: ``first_question`` or ``second_question``.
        audio: its recording.
        start, end: seconds on the conversation's clock.
        source_start, source_end: seconds in `audio`.
        text: what was meant.
        spoken_text: what is heard; of the first question the unfinished prefix.
        channel: of a recording with two channels: ``mean``, ``left`` or ``right``.
        field: where it stands in its row, for error messages.
    """

    role: str
    audio: Path
    start: float
    end: float
    source_start: float
    source_end: float
    text: str
    spoken_text: str
    channel: str
    field: str


@dataclass(frozen=True)
class RawSample:
    """One raw row.

    Attributes:
        sample_id: unique; a good file name on every system.
        video: the source video.
        video_offset: second of the conversation at which the video's 0 lies.
        events: the first question and the second.
        row: the whole row, unknown keys too.
        place: ``file:line`` of the row.
        recipe: name of what is compiled: a hash of row, field names and compiler version.
    """

    sample_id: str
    video: Path
    video_offset: float
    events: tuple[RawEvent, RawEvent]
    row: Mapping[str, Any]
    place: str
    recipe: str


def compiled_folder(work: Path, sample: RawSample) -> Path:
    """Where a sample is compiled: the recipe is in the name, so a new recipe is a new file."""
    return work / sample.sample_id / sample.recipe


def read_raw(
    path: str | Path,
    root: str | Path,
    fields: Mapping[str, str] | None = None,
    check_files: bool = True,
) -> list[RawSample]:
    """Read the raw rows whole, in their order.

    Args:
        path: the raw manifest.
        root: the repository root, to which its paths are relative (or to its own folder).
        fields: other names for the keys of `DEFAULT_FIELDS` (config ``raw.fields``).
        check_files: refuse a row whose video or audio is not there.

    Raises:
        HfdError: with ``file:line`` and field; everything `read_manifest` refuses, an unknown
            name in `fields`, and any number of questions but two.
    """
    reader = _Reader(Path(path), Path(root), _names(fields or {}), check_files)
    return [reader.sample(value, line) for line, value in read_rows(path)]


def try_raw(
    path: Path, root: Path, fields: Mapping[str, str]
) -> list[tuple[str, RawSample | HfdError]]:
    """Every row with its place (``file:line``), or in its place the error that `read_raw` raises.

    A line that is no JSON object ends the list: what follows cannot be read.

    Raises:
        HfdError: the file is missing or has no rows, or an unknown name in `fields`.
    """
    reader = _Reader(path, root, _names(fields), check_files=True)
    rows: list[tuple[str, RawSample | HfdError]] = []
    try:
        for line, value in read_rows(path):
            try:
                rows.append((f"{path}:{line}", reader.sample(value, line)))
            except HfdError as error:
                rows.append((f"{path}:{line}", error))
    except HfdError as error:
        if not rows:
            raise
        rows.append((error.file or str(path), error))
    return rows


def _names(fields: Mapping[str, str]) -> dict[str, str]:
    unknown = set(fields) - set(DEFAULT_FIELDS)
    if unknown:
        raise HfdError(
            f"{sorted(unknown)[0]!r} is no field of a raw row",
            file="config/config.yaml",
            field="raw.fields",
            remedy=f"Use one of {', '.join(DEFAULT_FIELDS)}",
        )
    return DEFAULT_FIELDS | dict(fields)


class _Reader:
    def __init__(self, path: Path, root: Path, names: dict[str, str], check_files: bool) -> None:
        self._path, self._root, self._names, self._check = path, root, names, check_files
        self._unique = UniqueIds()

    def sample(self, row: dict[str, Any], line: int) -> RawSample:
        place, names = f"{self._path}:{line}", self._names
        sample_id = check_id(lookup(row, names["sample_id"]), file=place, field=names["sample_id"])
        self._unique.add(sample_id, line, file=place, field=names["sample_id"])
        offset = lookup(row, names["video_offset"])
        recipe = {"compiler": COMPILER, "fields": names, "row": row}
        return RawSample(
            sample_id=sample_id,
            video=self._file(lookup(row, names["video"]), place, names["video"]),
            video_offset=seconds(offset, file=place, field=names["video_offset"], minimum=-86400),
            events=self._events(row, place),
            row=row,
            place=place,
            recipe=sha256_bytes(canonical_json(recipe).encode())[:16],
        )

    def _events(self, row: dict[str, Any], place: str) -> tuple[RawEvent, RawEvent]:
        field = self._names["inputs"]
        inputs = lookup(row, field)
        if not isinstance(inputs, list):
            found = "is missing" if inputs is None else f"is {kind(inputs)}, not a list"
            raise HfdError(found, file=place, field=field, remedy="List the two questions")
        if len(inputs) != 2:
            raise HfdError(
                f"has {len(inputs)} entries, not 2",
                file=place,
                field=field,
                remedy="A hesitation sample has a first and a second question",
            )
        for n, value in enumerate(inputs):
            if not isinstance(value, dict):
                raise HfdError(
                    f"is {kind(value)}, not an object", file=place, field=f"{field}[{n}]"
                )
        first, second = self._in_order(inputs, place, field)
        return (
            self._event(row, inputs[first], FIRST_QUESTION, place, f"{field}[{first}]"),
            self._event(row, inputs[second], SECOND_QUESTION, place, f"{field}[{second}]"),
        )

    def _in_order(self, inputs: list[dict[str, Any]], place: str, field: str) -> tuple[int, int]:
        """Which entry is the first question: by role where roles are given, else as listed."""
        roles = [lookup(value, self._names["role"]) for value in inputs]
        if roles == [None, None] or roles == [FIRST_QUESTION, SECOND_QUESTION]:
            return 0, 1
        if roles == [SECOND_QUESTION, FIRST_QUESTION]:
            return 1, 0
        raise HfdError(
            f"roles are {roles[0]!r} and {roles[1]!r}",
            file=place,
            field=f"{field}[].{self._names['role']}",
            remedy=f"Use {FIRST_QUESTION} and {SECOND_QUESTION}, or no roles and the right order",
        )

    def _event(
        self, row: dict[str, Any], value: dict[str, Any], role: str, place: str, field: str
    ) -> RawEvent:
        def at(name: str) -> tuple[Any, str]:
            return lookup(value, self._names[name]), f"{field}.{self._names[name]}"

        def number(name: str) -> float:
            found, where = at(name)
            return seconds(found, file=place, field=where)

        meant, meant_field = at("text")
        spoken, spoken_field = at("spoken_text")
        if spoken is None and role == SECOND_QUESTION:
            spoken, spoken_field = meant, meant_field
        return RawEvent(
            role=role,
            audio=self._file(*(at("audio")[0], place, at("audio")[1])),
            start=number("start"),
            end=number("end"),
            source_start=number("source_start"),
            source_end=number("source_end"),
            text=text(meant, file=place, field=meant_field),
            spoken_text=text(spoken, file=place, field=spoken_field),
            channel=self._channel(at("channel")[0], row, place, field),
            field=field,
        )

    def _channel(self, given: object, row: dict[str, Any], place: str, field: str) -> str:
        """The question's own choice, else the row's, else the mean."""
        name = self._names["channel"]
        if given is None:
            given, field = lookup(row, name), ""
        for channel in CHANNELS:
            if given == channel or (given is None and channel == MEAN):
                return channel
        raise HfdError(
            f"is {given!r:.80}",
            file=place,
            field=f"{field}.{name}" if field else name,
            remedy=f"Use one of {', '.join(CHANNELS)}",
        )

    def _file(self, value: object, place: str, field: str) -> Path:
        return find_file(
            value, self._root, self._path.parent, file=place, field=field, check=self._check
        )
