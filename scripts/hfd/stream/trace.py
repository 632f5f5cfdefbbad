"""The trace: one hash-chained line for everything that went in or came out (docs/formats.md)."""

from __future__ import annotations

import gzip
from pathlib import Path
from types import TracebackType
from typing import Any

from hfd.files import canonical_json, sha256_bytes, sha256_file
from hfd.stream.clock import Moment

SCHEMA = "hfd-trace/1"
_FIRST_PREV = "0" * 64


class TraceWriter:
    """Writes ``trace.jsonl.gz``; every line carries the SHA-256 of the line before it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # No name and no time in the gzip header: the bytes depend on the lines alone.
        self._raw = path.open("wb")
        self._gzip = gzip.GzipFile(
            filename="", fileobj=self._raw, mode="wb", compresslevel=1, mtime=0
        )
        self.lines = 0
        self.tail = _FIRST_PREV
        """SHA-256 of the last line."""

    def write(self, kind: str, at: Moment, **fields: Any) -> None:
        """Add one line of this kind at this moment; `fields` are its own."""
        record = {"seq": self.lines, "prev": self.tail, "kind": kind, **at._asdict(), **fields}
        line = canonical_json(record).encode()
        self._gzip.write(line + b"\n")
        self.tail = sha256_bytes(line)
        self.lines += 1

    def close(self) -> None:
        self._gzip.close()
        self._raw.close()

    def sha256(self) -> str:
        """SHA-256 of the closed file: other compressed bytes may hold the very same lines."""
        return sha256_file(self._path)

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.close()
