"""A delivered folder as a whole: plain files only, and checksums that cover every one of them."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from hfd.judge.plain_files import MOST_BYTES, NotPlain, read_plain

SUMS = "SHA256SUMS"
ABOUT = "ABOUT.json"
PREFIX = "results_"
INCOMPLETE = "_INCOMPLETE"
BESIDE = ("audit", "environment")
"""Folders of a delivery that hold no sample."""


def wrong_files(folder: Path) -> Iterator[str]:
    """What is wrong with a delivery's files, one line each.

    Links, pipes and devices anywhere; a delivery without SHA256SUMS; lines of it that do not hold,
    and files that it does not list.
    """
    plain = set()
    for path, mode in _walk(folder):
        name = path.relative_to(folder).as_posix()
        if stat.S_ISREG(mode):
            plain.add(name)
        else:
            what = "a link" if stat.S_ISLNK(mode) else "no plain file"
            yield f"{name} is {what}: a delivery holds plain files only"
    if SUMS in plain:
        yield from _wrong_sums(folder, plain - {SUMS})
    elif ABOUT in plain:
        yield f"{SUMS} is missing: nothing says which files were delivered"


def _walk(folder: Path) -> Iterator[tuple[Path, int]]:
    """Everything below a folder that is no folder itself; links are not followed."""
    for root, folders, files in os.walk(folder):
        for name in sorted([*folders, *files]):
            path = Path(root) / name
            mode = path.lstat().st_mode
            if not stat.S_ISDIR(mode):
                yield path, mode


def _wrong_sums(folder: Path, plain: set[str]) -> Iterator[str]:
    try:
        text = read_plain(folder / SUMS, MOST_BYTES).decode("utf-8")
    except (NotPlain, UnicodeDecodeError) as error:
        yield f"{SUMS} {error}"
        return
    listed = set()
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        digest, _, name = line.partition("  ")
        parts = PurePosixPath(name).parts
        if not name or PurePosixPath(name).is_absolute() or ".." in parts:
            yield f"{SUMS} line {number}: {name!r} is no file of the delivery"
            continue
        listed.add(name)
        if name not in plain:
            yield f"{SUMS} line {number}: {name} is missing"
        elif (found := _sha256(folder / name)) != digest:
            wrong = "was changed after delivery" if found else f"has more than {MOST_BYTES} bytes"
            yield f"{SUMS} line {number}: {name} {wrong}"
    for name in sorted(plain - listed):
        yield f"{name} is not listed in {SUMS}"


def _sha256(path: Path) -> str | None:
    try:
        return hashlib.sha256(read_plain(path)).hexdigest()
    except NotPlain:
        return None
