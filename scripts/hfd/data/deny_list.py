"""Videos that must not be used any more, by their SHA-256."""

from __future__ import annotations

import re
from pathlib import Path

from hfd.errors import HfdError

_LINE = re.compile(
    r"(?P<hash>[0-9a-f]{64})([ \t#].*)?|SHA256 \(.*\) = (?P<tagged>[0-9a-f]{64})", re.IGNORECASE
)


def read_deny_list(path: Path) -> frozenset[str]:
    """Read a list of SHA-256, one a line, as `sha256sum` writes them; ``#`` begins a comment.

    `sha256sum` begins a line with a backslash where the file's name has one, and with ``--tag``
    ends it with the hash. Names are of no interest here, nor is their encoding.

    Raises:
        HfdError: the file is missing, or a line does not begin with a SHA-256.
    """
    try:
        lines = path.read_text(encoding="utf-8-sig", errors="replace").split("\n")
    except OSError as error:
        raise HfdError(f"cannot be read ({error})", file=path) from error
    denied = set()
    for number, line in enumerate(lines, 1):
        if not line.split("#")[0].strip():
            continue
        found = _LINE.fullmatch(line.strip().removeprefix("\\"))
        if not found:
            raise HfdError(
                f"{line.strip()[:80]!r} does not begin with a SHA-256",
                file=f"{path}:{number}",
                remedy="Write one SHA-256 a line, as sha256sum does",
            )
        denied.add((found["hash"] or found["tagged"]).lower())
    return frozenset(denied)
