"""Files that are either whole or absent: temporary name, fsync, rename."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hfd.errors import HfdError


def sha256_bytes(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def sha256_file(path: str | Path) -> str:
    """SHA-256 of a file's bytes, as 64 hexadecimal digits."""
    with Path(path).open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def canonical_json(value: Any) -> str:
    """One line of JSON that depends on the value alone: sorted keys, no spaces, no NaN."""
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False
    )


def fsync_path(path: Path) -> None:
    """Flush a file, or a folder's list of names, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _beside(target: Path, suffix: str) -> Path:
    """A hidden name in the target's folder, short enough for any target name."""
    return target.with_name(
        f".{sha256_bytes(os.fsencode(target.name))[:16]}.{os.getpid()}.{suffix}"
    )


@contextmanager
def atomic_path(target: str | Path) -> Iterator[Path]:
    """Give a temporary path beside `target`; on success it becomes `target`, on error it goes.

    A reader of `target` sees the old file or the whole new one, also after a crash.
    """
    target = Path(target)
    part = _beside(target, "part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        yield part
        fsync_path(part)
        part.replace(target)
        fsync_path(target.parent)
    except OSError as error:
        raise HfdError(
            f"cannot be written: {error.strerror or error}",
            file=target,
            remedy="Check free space and write permission, then run again; nothing was replaced",
        ) from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def atomic_write(target: str | Path, data: bytes | str) -> None:
    """Write `data` (text as UTF-8) to `target`, whole or not at all."""
    with atomic_path(target) as part:
        part.write_bytes(data.encode() if isinstance(data, str) else data)


def json_text(value: Any) -> str:
    """Readable JSON: 2 spaces, keys in given order, no NaN."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def write_json(target: str | Path, value: Any) -> None:
    """Write readable JSON as UTF-8, whole or not at all."""
    atomic_write(target, json_text(value))


def read_json(path: str | Path) -> Any:
    """Read a JSON file; bad JSON or encoding is an `HfdError` that names the file."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8-sig"))
    except FileNotFoundError as error:
        raise HfdError("file is missing", file=path) from error
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise HfdError(f"is no valid UTF-8 JSON ({error})", file=path) from error


def replace_folder(part: Path, target: Path) -> None:
    """Put the finished folder `part` in the place of `target`; files in `part` are flushed first.

    Between the two renames `target` is absent, never half-written.
    """
    for path in part.iterdir():
        fsync_path(path)
    fsync_path(part)
    old = _beside(target, "old")
    if target.exists():
        target.replace(old)
    part.replace(target)
    fsync_path(target.parent)
    shutil.rmtree(old, ignore_errors=True)
