"""Read files that others made: plain files only, of bounded size, and numbers that fit anywhere."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

MOST_BYTES = 256 * 2**20
"""Of any file of a result: 45 minutes of sound at 48 kHz."""
MOST_DOCUMENT_BYTES = 16 * 2**20
MOST_NUMBER = 2**62
MOST_DEPTH = 100


class NotPlain(Exception):
    """The file cannot be read as what it should be; the text says why."""


def read_plain(path: Path, most: int = MOST_BYTES) -> bytes:
    """All bytes of a regular file.

    Raises:
        NotPlain: it is missing, a link, a pipe or a device, or larger than `most` bytes.
    """
    try:
        # Without O_NONBLOCK a pipe would be waited for; with it, it is opened and then refused.
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError as error:
        link = path.is_symlink()
        raise NotPlain("is a link" if link else f"cannot be read: {error.strerror}") from error
    except ValueError as error:  # a zero byte in the name
        raise NotPlain(f"cannot be read: {error}") from error
    found = os.fstat(handle)
    if not stat.S_ISREG(found.st_mode) or found.st_size > most:
        os.close(handle)
        plain = stat.S_ISREG(found.st_mode)
        raise NotPlain(f"has {found.st_size} bytes, more than {most}" if plain else _NOT_REGULAR)
    with os.fdopen(handle, "rb") as file:
        data = file.read(found.st_size + 1)
    if len(data) > found.st_size:
        raise NotPlain("grows while it is read")
    return data


_NOT_REGULAR = "is no plain file"


def odd_value(value: Any) -> str | None:
    """What a JSON value holds that no result can: huge numbers, half characters, deep nesting."""
    level, depth = [value], 0
    while level:
        if depth > MOST_DEPTH:
            return f"it is nested more than {MOST_DEPTH} deep"
        inner: list[Any] = []
        for part in level:
            if isinstance(part, str):
                if not part.isascii() and not _is_text(part):
                    return "it holds half a character (a lone surrogate)"
            elif isinstance(part, _NUMBER):
                if not -MOST_NUMBER <= part <= MOST_NUMBER:
                    return "it holds a number that is not finite or far too large"
            elif isinstance(part, dict):
                inner += part
                inner += part.values()
            elif isinstance(part, list):
                inner += part
        level, depth = inner, depth + 1
    return None


_NUMBER = (int, float)


def _is_text(part: str) -> bool:
    try:
        part.encode()
    except UnicodeEncodeError:
        return False
    return True
