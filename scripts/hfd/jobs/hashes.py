"""SHA-256 of large files, remembered for as long as their size and time stay the same."""

from __future__ import annotations

import json
from pathlib import Path

from hfd.errors import HfdError
from hfd.files import sha256_bytes, sha256_file, write_json


class HashCache:
    """Hashes by path; a file whose size or modification time differs is hashed again.

    Equality, not order, of times decides: a clock that was set back changes nothing.

    Args:
        folder: where the records lie, one small file each.
        read_only: remember nothing on disk (dry runs, the parsing of the Snakefile).
    """

    def __init__(self, folder: Path, read_only: bool = False) -> None:
        self._folder = folder
        self._read_only = read_only
        self._known: dict[Path, str] = {}

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

    def _recorded_or_new(self, path: Path) -> str:
        try:
            stat = path.stat()
        except OSError as error:
            raise HfdError(f"cannot be read: {error.strerror}", file=path) from error
        key = {"path": str(path), "size": stat.st_size, "mtime_ns": stat.st_mtime_ns}
        record = self._folder / f"{sha256_bytes(str(path).encode())[:32]}.json"
        try:
            known = json.loads(record.read_text(encoding="utf-8"))
            if all(known[name] == value for name, value in key.items()):
                return known["sha256"]
        except (OSError, ValueError, KeyError, TypeError):
            pass  # no record, or an unreadable one: hash the file
        digest = sha256_file(path)
        if not self._read_only:
            write_json(record, key | {"sha256": digest})
        return digest
