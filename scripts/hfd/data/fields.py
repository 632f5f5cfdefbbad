"""Values out of JSON objects, checked one by one, so that an error names the field."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from hfd.errors import HfdError

MAX_SECONDS = 86_400.0
"""No time in a sample lies beyond a day; larger numbers are milliseconds or garbage."""


def kind(value: object) -> str:
    """The JSON name of a value's type, for error messages."""
    names = {bool: "a boolean", dict: "an object", list: "a list", str: "text", type(None): "null"}
    return names.get(type(value), "a number")


def lookup(row: Mapping[str, Any], dotted: str) -> Any:
    """The value at a dotted path such as ``timing.video_offset``; None if it is not there."""
    value: Any = row
    for key in dotted.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return None
        value = value[key]
    return value


def seconds(value: object, *, file: str | Path, field: str, minimum: float = 0.0) -> float:
    """A finite number of seconds, at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        found = "is missing" if value is None else f"is {kind(value)}, not a number of seconds"
        raise HfdError(found, file=file, field=field, remedy="Write seconds as a plain number")
    if not minimum <= value <= MAX_SECONDS:  # also false for NaN
        shown = value if isinstance(value, float) or abs(value) < 10**12 else "a huge number"
        raise HfdError(
            f"{shown} is not between {minimum:g} and {MAX_SECONDS:g} seconds",
            file=file,
            field=field,
            remedy="Write seconds (not milliseconds) as a plain, finite number",
        )
    return float(value)


def text(value: object, *, file: str | Path, field: str) -> str:
    """Text that holds more than white space."""
    if not isinstance(value, str) or not value.strip():
        found = "is missing" if value is None else "is empty"
        if value is not None and not isinstance(value, str):
            found = f"is {kind(value)}, not text"
        raise HfdError(found, file=file, field=field, remedy="Write the value as text")
    return value


def relative_path(value: object, *, file: str | Path, field: str) -> PurePosixPath:
    """A path below the folder it is relative to, checked by its letters alone."""
    written = text(value, file=file, field=field)
    path = PurePosixPath(written)
    if "{" in written or "}" in written:
        raise HfdError(
            f"path {written[:200]!r} has a brace, which Snakemake takes for a wildcard",
            file=file,
            field=field,
            remedy="Rename the file without { and }",
        )
    control = any(unicodedata.category(char) in ("Cc", "Cs") for char in written)
    if control or path.is_absolute() or ".." in path.parts or _too_long(path):
        raise HfdError(
            f"path {written[:200]!r} is absolute, leaves its folder, is too long or has control "
            "characters",
            file=file,
            field=field,
            remedy="Write the path relative to the repository root, without '..'",
        )
    return path


def find_file(
    value: object, root: Path, beside: Path, *, file: str | Path, field: str, check: bool = True
) -> Path:
    """The file a row names: relative to `root`, else to the folder `beside`.

    Raises:
        HfdError: an unfit path; or, if `check`, no such file in either place.
    """
    relative = relative_path(value, file=file, field=field)
    found = root / relative
    if found.is_file():
        return found
    if (beside / relative).is_file():
        return beside / relative
    if check:
        raise HfdError(
            f"there is no file {str(relative)!r} in {str(root)!r} or {str(beside)!r}",
            file=file,
            field=field,
            remedy="Put the file there, or correct the path (relative to the repository root)",
        )
    return found


def _too_long(path: PurePosixPath) -> bool:
    return len(str(path).encode()) > 4000 or any(len(part.encode()) > 255 for part in path.parts)
