"""Put compiled hesitation samples in the place of the old ones, all together or not at all."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfd.data.compile import source_hashes
from hfd.data.fields import find_file
from hfd.data.jsonl import BOM, Row, read_lines
from hfd.data.manifest import HESITATION, read_manifest, sample_id_of
from hfd.data.raw import RawSample, compiled_folder
from hfd.errors import HfdError
from hfd.files import atomic_path, atomic_write, read_json, sha256_bytes, sha256_file


@dataclass(frozen=True)
class Compiled:
    """One compiled sample in its working folder.

    Attributes:
        sample_id: its id.
        video, adapter: the two files.
        facts: the adapter's content.
    """

    sample_id: str
    video: Path
    adapter: Path
    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Report:
    """What a regeneration did.

    Attributes:
        kept: number of rows that were left as they were.
        kept_sha256: hash of their bytes in their order, the same before and after.
        replaced, added: ids of hesitation rows that were there, and that are new.
        files: names of the files that were replaced, with SHA-256 before (or None) and after.
    """

    kept: int
    kept_sha256: str
    replaced: tuple[str, ...]
    added: tuple[str, ...]
    files: Mapping[str, tuple[str | None, str]]


def load_compiled(work: Path, samples: Iterable[RawSample]) -> list[Compiled]:
    """Take the compiled samples, each checked against its sources and its own hash.

    Raises:
        HfdError: a sample is not compiled, its video is damaged, or a source has changed since.
    """
    return [_load(sample, compiled_folder(work, sample)) for sample in samples]


def regenerate(manifest: Path, root: Path, compiled: Sequence[Compiled]) -> Report:
    """Replace the hesitation rows of the manifest, and the files they name.

    A row keeps its place, its unknown keys and the paths of its files; rows for new ids are
    appended. Every other row keeps its bytes and its order. Files are copied beside their places
    first and renamed together, the manifest last: an interruption leaves the old manifest whole.

    Raises:
        HfdError: a hesitation row has no raw row, an id belongs to another task, a file is shared
            with another sample, or the manifest was changed meanwhile.
    """
    before = manifest.read_bytes() if manifest.exists() else b""
    lines = list(read_lines(manifest)) if before.strip(BOM + b"\r\n\t ") else []
    if lines:
        read_manifest(manifest, root, check_files=False)
    new = {item.sample_id: item for item in compiled}
    ids = {row.line: sample_id_of(row.value, "")[0] for row in lines if row.value is not None}
    _refuse_mismatch(lines, ids, new, manifest)

    added = [item for item in compiled if item.sample_id not in ids.values()]
    values = {ids[row.line]: row.value for row in lines if ids.get(row.line) in new}
    values |= {item.sample_id: {} for item in added}
    rows = {key: _new_row(new[key], value, manifest, root) for key, value in values.items()}
    copies = {key: _copies(new[key], row, manifest, root) for key, row in rows.items()}
    kept = [row for row in lines if ids.get(row.line) not in new]
    _refuse_shared(kept, copies, manifest, root)

    text = b"".join(
        _rewritten(row, rows[ids[row.line]]) if ids.get(row.line) in new else row.raw
        for row in lines
    )
    for item in added:
        line_break = b"" if not text or text.endswith(b"\n") else b"\n"
        text += line_break + _dump(rows[item.sample_id]) + b"\n"
    files = _replace_files([pair for pairs in copies.values() for pair in pairs])
    if text != before:
        if (manifest.read_bytes() if manifest.exists() else b"") != before:
            raise HfdError("was changed meanwhile", file=manifest, remedy="Run it again")
        atomic_write(manifest, text)
    digest = _digest(kept)
    _prove(manifest, set(new), digest)
    return Report(
        kept=sum(row.value is not None for row in kept),
        kept_sha256=digest,
        replaced=tuple(sample_id for sample_id in ids.values() if sample_id in new),
        added=tuple(item.sample_id for item in added),
        files=files,
    )


def remove_stale(work: Path, samples: Iterable[RawSample]) -> None:
    """Remove what earlier recipes and killed runs left in the samples' working folders."""
    for sample in samples:
        current = compiled_folder(work, sample)
        for path in current.parent.iterdir():
            if path != current:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _load(sample: RawSample, folder: Path) -> Compiled:
    video, adapter = folder / "video.mp4", folder / "adapter.json"
    facts = read_json(adapter)
    compiled = facts["compiled"]
    if sha256_file(video) != compiled["video_sha256"]:
        raise HfdError("is not what was compiled", file=video, remedy=f"Remove {folder}")
    for name, digest in source_hashes(sample).items():
        if digest != compiled["sources_sha256"][name]:
            raise HfdError(
                f"{name} is another file than the one that was compiled",
                file=sample.place,
                remedy=f"Remove {folder}, so that it is compiled again",
            )
    return Compiled(sample.sample_id, video, adapter, facts)


def _refuse_mismatch(
    lines: list[Row], ids: dict[int, str], new: dict[str, Compiled], manifest: Path
) -> None:
    for row in lines:
        if row.value is None:
            continue
        sample_id, task = ids[row.line], row.value["task"]
        if (task == HESITATION) != (sample_id in new):
            problem = (
                f"hesitation sample {sample_id!r} has no raw row"
                if task == HESITATION
                else f"id {sample_id!r} belongs to task {task!r}, but has a raw hesitation row"
            )
            raise HfdError(
                problem,
                file=f"{manifest}:{row.line}",
                field="task",
                remedy="Make the raw rows and the manifest agree; nothing was changed",
            )


def _refuse_shared(
    kept: list[Row], copies: dict[str, list[tuple[Path, Path]]], manifest: Path, root: Path
) -> None:
    targets = {target for pairs in copies.values() for _, target in pairs}
    if len(targets) < 2 * len(copies):
        raise HfdError("two hesitation rows name the same file", file=manifest)
    for row in kept:
        for field in ("video", "adapter"):
            value = (row.value or {}).get(field)
            if value is not None and _target(value, field, manifest, root) in targets:
                raise HfdError(
                    f"{value!r} is also the file of a hesitation sample",
                    file=f"{manifest}:{row.line}",
                    field=field,
                    remedy="Give each sample a file of its own; nothing was changed",
                )


def _new_row(
    item: Compiled, old: Mapping[str, Any] | None, manifest: Path, root: Path
) -> dict[str, Any]:
    old = dict(old or {"sample_id": item.sample_id, "task": HESITATION})
    here = _folder_in_root(manifest, root)
    return old | {
        "video": old.get("video") or f"{here}videos/{item.sample_id}.mp4",
        "adapter": old.get("adapter") or f"{here}adapters/{item.sample_id}.json",
        "duration_seconds": item.facts["duration_seconds"],
        **{name: item.facts[name] for name in ("p0", "p1", "q0", "q1")},
    }


def _folder_in_root(manifest: Path, root: Path) -> str:
    try:
        # By name first: data/ may be a link to other storage, and rows say data/, not where it is.
        folder = manifest.parent.absolute().relative_to(root.absolute())
    except ValueError:
        try:
            folder = manifest.parent.resolve().relative_to(root.resolve())
        except ValueError as error:
            raise HfdError(f"does not lie in {str(root)!r}", file=manifest) from error
    return "" if folder == Path() else f"{folder.as_posix()}/"


def _copies(
    item: Compiled, row: Mapping[str, Any], manifest: Path, root: Path
) -> list[tuple[Path, Path]]:
    return [
        (item.video, _target(row["video"], "video", manifest, root)),
        (item.adapter, _target(row["adapter"], "adapter", manifest, root)),
    ]


def _target(value: str, field: str, manifest: Path, root: Path) -> Path:
    return find_file(value, root, manifest.parent, file=manifest, field=field, check=False)


def _rewritten(row: Row, value: dict[str, Any]) -> bytes:
    """The row's new bytes, between its own BOM and line end; its old ones if nothing changed."""
    if value == row.value:
        return row.raw
    mark = BOM if row.raw.startswith(BOM) else b""
    return mark + _dump(value) + row.raw[len(row.raw.rstrip(b"\r\n")) :]


def _dump(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False).encode()


def _replace_files(copies: list[tuple[Path, Path]]) -> dict[str, tuple[str | None, str]]:
    changed: dict[str, tuple[str | None, str]] = {}
    with ExitStack() as stack:
        for source, target in copies:
            old = sha256_file(target) if target.is_file() else None
            new = sha256_file(source)
            if old != new:
                shutil.copyfile(source, stack.enter_context(atomic_path(target)))
                changed[str(target)] = (old, new)
    return changed


def _digest(rows: Iterable[Row]) -> str:
    """Hash of the rows' bytes in order, each without its newline (the last one may have none)."""
    return sha256_bytes(b"\n".join(row.raw.removesuffix(b"\n") for row in rows))


def _prove(manifest: Path, replaced: set[str], digest: str) -> None:
    lines = read_lines(manifest)
    kept = [row for row in lines if not row.value or sample_id_of(row.value, "")[0] not in replaced]
    if _digest(kept) != digest:
        raise HfdError("other rows than the hesitation rows have changed", file=manifest)
