"""Videos that must not be used any more: the list of their hashes."""

from __future__ import annotations

import re
from pathlib import Path

from hfd.errors import HfdError

_HASH = re.compile(r"[0-9a-f]{64}")


def read_deny_list(path: Path | None) -> dict[str, str]:
    """Read ``<sha256>  <why>`` lines (``#`` begins a comment); SHA-256 to reason.

    Raises:
        HfdError: a line that does not begin with a hash.
    """
    if path is None:
        return {}
    denied = {}
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except OSError as error:
        raise HfdError(f"cannot be read: {error.strerror}", file=path) from error
    for number, line in enumerate(lines, 1):
        written = line.split("#", 1)[0].strip()
        if not written:
            continue
        digest, _, reason = written.partition(" ")
        if not _HASH.fullmatch(digest.lower()):
            raise HfdError(
                f"{digest[:80]!r} is no SHA-256",
                file=f"{path}:{number}",
                remedy="Write 64 hexadecimal digits, a space and why the video is denied",
            )
        denied[digest.lower()] = reason.strip() or "old version"
    return denied
