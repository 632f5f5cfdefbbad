"""JSON Lines, read lazily: one object a line, every error with file and line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from hfd.data.fields import kind
from hfd.errors import HfdError

MAX_LINE_BYTES = 1 << 20
"""No sample needs a megabyte; a longer line is a file that is not JSON Lines."""
BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Row:
    """One line of a JSON Lines file.

    Attributes:
        line: its number, from 1.
        raw: its bytes as they stand in the file, with BOM and line end.
        value: the object; None for a blank line.
    """

    line: int
    raw: bytes
    value: dict[str, Any] | None


def read_lines(path: str | Path) -> Iterator[Row]:
    """Every line of the file, blank ones too, so that the raw bytes add up to the file.

    Raises:
        HfdError: no such file, a line over 1 MiB, wrong encoding, bad JSON, a repeated key, or a
            line that is no object.
    """
    path = Path(path)
    try:
        with path.open("rb") as stream:
            number = 0
            while raw := stream.readline(MAX_LINE_BYTES + 1):
                number += 1
                yield Row(number, raw, _parse(raw, f"{path}:{number}", first=number == 1))
    except FileNotFoundError as error:
        raise HfdError("file is missing", file=path) from error
    except OSError as error:
        raise HfdError(f"cannot be read: {error.strerror}", file=path) from error


def read_rows(path: str | Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The lines that hold an object, by their number, and the objects; at least one.

    Raises:
        HfdError: as `read_lines`, or a file without any row.
    """
    rows = ((row.line, row.value) for row in read_lines(path) if row.value is not None)
    first = next(rows, None)
    if first is None:
        raise HfdError("has no rows", file=path, remedy="Write one JSON object a line")
    yield first
    yield from rows


def _parse(raw: bytes, place: str, *, first: bool) -> dict[str, Any] | None:
    if len(raw) > MAX_LINE_BYTES:
        raise HfdError(
            f"line is longer than {MAX_LINE_BYTES} bytes",
            file=place,
            remedy="Write one JSON object a line (a JSON list becomes lines with: jq -c '.[]')",
        )
    body = raw.removeprefix(BOM) if first else raw
    if not body.strip():
        return None
    try:
        value = json.loads(
            body.decode(), parse_constant=_no_number, object_pairs_hook=_without_repeats
        )
    except UnicodeDecodeError as error:
        raise HfdError(
            f"is not UTF-8 (byte {error.start + 1} of the line)", file=place, remedy="Save as UTF-8"
        ) from error
    except RecursionError as error:
        raise HfdError("is nested too deeply", file=place) from error
    except ValueError as error:
        raise HfdError(
            f"is not valid JSON ({error})", file=place, remedy="Write one JSON object a line"
        ) from error
    if not isinstance(value, dict):
        raise HfdError(
            f"row is {kind(value)}, not an object",
            file=place,
            remedy="Write one JSON object a line (a JSON list becomes lines with: jq -c '.[]')",
        )
    return value


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"key {twice!r} appears twice in one object")
    return value
