"""Videos that must not be used any more, by their SHA-256."""

from __future__ import annotations

import re
from pathlib import Path

from hfd.errors import HfdError


def read_deny_list(path: Path) -> frozenset[str]:
    """Read a list of SHA-256, one a line, as `sha256sum` writes them; ``#`` begins a comment.

    Raises:
        HfdError: the file is missing, or a line does not begin with a SHA-256.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise HfdError(f"cannot be read ({error})", file=path) from error
    denied = set()
    for number, line in enumerate(lines, 1):
        words = line.split("#")[0].split()
        if not words:
            continue
        digest = words[0].lower()
        if not re.fullmatch(r"[0-9a-f]{64}", digest):
            raise HfdError(
                f"{words[0][:80]!r} is no SHA-256",
                file=f"{path}:{number}",
                remedy="Write one SHA-256 a line, as sha256sum does",
            )
        denied.add(digest)
    return frozenset(denied)
