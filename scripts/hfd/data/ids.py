"""Which sample ids are good names for files, folders and Snakemake wildcards on every system."""

from __future__ import annotations

import unicodedata
from pathlib import Path

from hfd.errors import HfdError

MAX_ID_BYTES = 200
"""A file name may have 255 bytes; the rest is for `.adapter.json` and the like."""

_FORBIDDEN = {"/": "a path separator", "\\": "a path separator", "{": "a brace", "}": "a brace"}
_FORBIDDEN_CATEGORIES = {"Cc": "control", "Cs": "surrogate", "Zl": "line break", "Zp": "line break"}
_DEVICES = {"con", "prn", "aux", "nul"} | {
    f"{port}{n}" for port in ("com", "lpt") for n in "123456789"
}
_REMEDY = "Rename the sample; letters of any script, digits, spaces, - and _ are fine"


def check_id(value: object, *, file: str | Path, field: str) -> str:
    """Give `value` back if it can be a sample id.

    An id becomes a folder and a file name, so refused are: no text, empty, over 200 bytes, path
    separators, ``{`` and ``}`` (Snakemake's wildcards), control characters, a leading dot (hidden,
    and ``..``), a space or dot at an end (Windows drops them), and device names such as ``con``.
    Unicode, inner spaces, quotes, ``%`` and leading dashes are fine.

    Raises:
        HfdError: names the rule that `value` breaks.
    """
    problem = _problem(value)
    if problem:
        shown = repr(value if len(str(value)) <= 60 else f"{str(value)[:57]}...")
        raise HfdError(f"id {shown} {problem}", file=file, field=field, remedy=_REMEDY)
    return str(value)


def _problem(value: object) -> str | None:
    if not isinstance(value, str):
        return "is not text"
    if not value.strip():
        return "is empty"
    for char in value:
        kind = _FORBIDDEN_CATEGORIES.get(unicodedata.category(char))
        if kind:
            return f"contains a {kind} character (U+{ord(char):04X})"
        if char in _FORBIDDEN:
            return f"contains {_FORBIDDEN[char]} ({char})"
    if len(value.encode()) > MAX_ID_BYTES:
        return f"has more than {MAX_ID_BYTES} bytes in UTF-8"
    if value.startswith("."):
        return "starts with a dot"
    if value != value.strip() or value.endswith("."):
        return "starts or ends with a space, or ends with a dot"
    if value.split(".")[0].strip().casefold() in _DEVICES:
        return "is the name of a device on Windows"
    return None


def same_file_key(value: str) -> str:
    """Equal for ids that some file system would take for one name (case, Unicode normalisation)."""
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", value).casefold())


class UniqueIds:
    """Refuses an id that was seen before, also in another case or normalisation."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[str, int]] = {}

    def add(self, sample_id: str, line: int, *, file: str | Path, field: str) -> None:
        """Remember the id of a line.

        Raises:
            HfdError: an earlier line has the same id, or one that is the same file name elsewhere.
        """
        other, other_line = self._seen.setdefault(same_file_key(sample_id), (sample_id, line))
        if other_line == line:
            return
        how = (
            "is the same as" if other == sample_id else "differs only in case or Unicode form from"
        )
        raise HfdError(
            f"id {sample_id!r} {how} {other!r} in line {other_line}",
            file=file,
            field=field,
            remedy="Give every sample an id of its own",
        )
