"""SHA-256 of large files, remembered for as long as the file stays the same one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hfd.errors import HfdError
from hfd.files import sha256_bytes, sha256_file, write_json


def signature(path: Path) -> list[int] | None:
    """What tells cheaply that a file was touched or replaced; None if there is none.

    Size and modification time alone do not: ``cp -p``, ``rsync -a`` and ``tar`` put another file
    in its place with any time they like. Its inode and its time of change they cannot choose.
    """
    try:
        stat = path.stat()
    except OSError:
        return None
    return [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino]


class HashCache:
    """Hashes by path; a file whose `signature` differs is hashed again.

    Equality, not order, of times decides: a clock that was set back changes nothing.

    Args:
        folder: where the records lie, one small file each.
        read_only: keep new hashes in memory until `save` (a dry run writes nothing).
    """

    def __init__(self, folder: Path, read_only: bool = False) -> None:
        self._folder = folder
        self._read_only = read_only
        self._known: dict[Path, str] = {}
        self._unsaved: dict[Path, dict[str, Any]] = {}

    def sha256(self, path: Path) -> str:
        """Hash of a file's bytes.

        Raises:
            HfdError: the file is missing or cannot be read.
        """
        if path not in self._known:
            self._known[path] = self._recorded_or_new(path)
        return self._known[path]

    def sha256_tree(self, path: Path) -> str:
        """Hash of a file, or of a folder's file names and contents."""
        if not path.is_dir():
            return self.sha256(path)
        files = sorted(item for item in path.rglob("*") if item.is_file())
        lines = [f"{item.relative_to(path).as_posix()} {self.sha256(item)}" for item in files]
        return sha256_bytes("\n".join(lines).encode())

    def save(self) -> None:
        """Write down what a read-only cache has hashed, so that the next run need not."""
        for record, value in self._unsaved.items():
            write_json(record, value)
        self._unsaved.clear()

    def _recorded_or_new(self, path: Path) -> str:
        seen = signature(path)
        record = self._folder / f"{sha256_bytes(str(path).encode())[:32]}.json"
        try:
            known = json.loads(record.read_text(encoding="utf-8"))
            if seen and known["path"] == str(path) and known["signature"] == seen:
                return known["sha256"]
        except (OSError, ValueError, KeyError, TypeError):
            pass  # no record, or an unreadable one: hash the file
        try:
            digest = sha256_file(path)
        except OSError as error:
            raise HfdError(f"cannot be read: {error.strerror}", file=path) from error
        self._unsaved[record] = {"path": str(path), "signature": seen, "sha256": digest}
        if not self._read_only:
            self.save()
        return digest
