"""One model's private store of finished samples, its error records, and what is published.

work/<model>/store/<id>/        a finished sample, complete or absent
work/<model>/errors/<id>.json   why the last attempt failed
results/<model>/<id>/           copies of the store's files
"""

from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfd.errors import HfdError
from hfd.files import read_json, replace_folder, sha256_bytes, sha256_file

FILES = ("assistant_audio.wav", "trace.jsonl.gz", "provenance.json", "result.json")
"""Files of a finished sample, in the order in which they are published: result.json is last."""
_WAV_HEADER_BYTES = 44


@dataclass(frozen=True)
class Store:
    """The folders of one model under the repository root (or a run's working folder)."""

    root: Path
    model: str

    @property
    def folder(self) -> Path:
        return self.root / "work" / self.model

    def entry(self, sample_id: str) -> Path:
        return self.folder / "store" / sample_id

    def part(self, sample_id: str) -> Path:
        """Where the sample in flight is written; only the holder of its lease may touch it."""
        return self.folder / "store" / f".part-{_short(sample_id)}"

    def lease(self, sample_id: str) -> Path:
        return self.folder / "leases" / f"{_short(sample_id)}.json"

    def error_file(self, sample_id: str) -> Path:
        return self.folder / "errors" / f"{sample_id}.json"

    def ticket(self, shard: str) -> Path:
        return self.folder / "shards" / f"{shard}.ticket"

    def check(self, sample_id: str) -> Path:
        """The verdict on the sample's files; there may be none."""
        return self.root / "work" / "checks" / f"{sample_id}.json"

    def cannot_start(self, shard: str) -> Path:
        """Why the model could not be started for a shard; its retries would fail alike."""
        return self.folder / "shards" / f"{shard}.error"

    @property
    def hashes(self) -> Path:
        """Where hashes of large files are remembered, for all models."""
        return self.root / "work" / "hashes"

    @property
    def plan(self) -> Path:
        return self.folder / "plan.json"

    def published(self, sample_id: str) -> Path:
        return self.root / "results" / self.model / sample_id

    def error(self, sample_id: str) -> dict[str, Any] | None:
        """The record of the last failed attempt, or None."""
        path = self.error_file(sample_id)
        return read_json(path) if path.exists() else None


@dataclass(frozen=True)
class PlainStore(Store):
    """One folder of results without the workflow: ``<out>/<id>/`` is entry and result in one.

    Attributes:
        out: the folder; errors, leases and hashes lie in its ``.hfd/``.
    """

    out: Path = Path()

    @property
    def folder(self) -> Path:
        return self.out / ".hfd"

    def entry(self, sample_id: str) -> Path:
        return self.out / sample_id

    def published(self, sample_id: str) -> Path:
        return self.out / sample_id

    def check(self, sample_id: str) -> Path:
        return self.folder / "checks" / f"{sample_id}.json"

    @property
    def hashes(self) -> Path:
        return self.folder / "hashes"


def _short(sample_id: str) -> str:
    return sha256_bytes(sample_id.encode())[:24]


@dataclass(frozen=True)
class Glance:
    """What a folder shows at a glance, for a few system calls; `verify` reads everything.

    Attributes:
        sizes: bytes of the four files; -1 where one is missing.
        provenance: of a finished sample whose files have the right sizes, else None.
    """

    sizes: list[int]
    provenance: dict[str, Any] | None


def glance(folder: Path, twin: tuple[bytes, Glance] | None = None) -> tuple[bytes, Glance]:
    """Look at a folder.

    Args:
        folder: of a store or of results.
        twin: a look at the other copy, which need not be parsed again where the bytes are equal.

    Returns:
        The bytes of provenance.json, and what was seen.
    """
    sizes = [_size(f"{folder}/{name}") for name in FILES]
    try:
        text = Path(f"{folder}/provenance.json").read_bytes() if min(sizes) > 0 else b""
        if twin and text and (text, sizes) == (twin[0], twin[1].sizes):
            return twin
        provenance = json.loads(text)
        whole = sizes[0] == _WAV_HEADER_BYTES + 2 * provenance["wav"]["samples"]
    except (OSError, ValueError, KeyError, TypeError):
        return b"", Glance(sizes, None)
    return text, Glance(sizes, provenance if whole else None)


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size  # noqa: PTH116 (thousands of times in each parse)
    except OSError:
        return -1


_HASHED = {"result": "result.json", "wav": "assistant_audio.wav", "trace": "trace.jsonl.gz"}


def verify(folder: Path) -> dict[str, Any]:
    """Read a finished sample whole and return its provenance.

    Raises:
        HfdError: a file is missing, cut short or altered.
    """
    provenance = read_json(folder / "provenance.json")
    result = read_json(folder / "result.json")
    try:
        if result["sample_id"] != folder.name:
            raise ValueError(f"it is a result of {result['sample_id']!r}")
        for part, name in _HASHED.items():
            if sha256_file(folder / name) != provenance[part]["sha256"]:
                raise ValueError(f"{name} differs from provenance.json")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise HfdError(f"is no whole result ({error})", file=folder) from error
    return provenance


def restore(store: Store, sample_id: str) -> None:
    """Bring a published sample back into a store that has lost it; the caller holds its lease."""
    part = store.part(sample_id)
    shutil.rmtree(part, ignore_errors=True)
    shutil.copytree(store.published(sample_id), part)
    replace_folder(part, store.entry(sample_id))


def failed_in(ticket: Path) -> set[str]:
    """The samples that a shard's worker could not bring into the store."""
    samples = read_json(ticket).get("samples", {})
    return {name for name, how in samples.items() if how == "failed"}


def publish(store: Store, sample_id: str, ticket: Path) -> None:
    """Copy a finished sample to results/, each file whole or absent, result.json last.

    The files are copies, never hard links, so that damage to a published file cannot reach the
    store. They are not flushed to the disk: the store's are, and what a power cut takes from
    results/ is seen by the next run and copied again.

    Args:
        store: the model's.
        sample_id: the sample.
        ticket: of the shard that was to finish it; what it calls failed is not published, though
            the store may hold a result of earlier inputs.

    Raises:
        HfdError: there is none (with the recorded error), or it is damaged; a damaged entry is
            dropped, and the next run computes it again.
    """
    entry, target = store.entry(sample_id), store.published(sample_id)
    if not entry.is_dir() or sample_id in failed_in(ticket):
        error = store.error(sample_id)
        mend = "Mend its files, then run" if error and error.get("input") else "Run"
        raise HfdError(
            f"{store.model}: {error['error']}" if error else f"{store.model} left no result",
            file=store.error_file(sample_id) if error else entry,
            remedy=f"{mend} again: it is tried once more, finished samples are not repeated",
        )
    try:
        verify(entry)
    except HfdError as error:
        shutil.rmtree(entry)
        raise HfdError(
            f"{error.problem}; it was dropped", file=entry, remedy="Run again to compute it"
        ) from error
    try:
        target.mkdir(parents=True, exist_ok=True)
        (target / FILES[-1]).unlink(
            missing_ok=True
        )  # an older result must not stand over new files
        _copy_side(entry / "side", target / "side")
        for name in FILES:
            _copy(entry / name, target / name)
    except OSError as error:
        several = isinstance(error, shutil.Error) and error.args[0]
        reason = several[0][2] if several else error.strerror
        raise HfdError(
            f"cannot be written: {reason}",
            file=error.filename2 or error.filename or target,
            remedy="Free space or mend the permissions, then run again; nothing is computed twice",
        ) from error


def _copy(source: Path, target: Path) -> None:
    part = target.with_name(f".{target.name}.part")
    try:
        shutil.copyfile(source, part)
        part.replace(target)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def _copy_side(source: Path, target: Path) -> None:
    shutil.rmtree(target, ignore_errors=True)
    if source.is_dir():
        shutil.copytree(source, target)
