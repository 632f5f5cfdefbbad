"""Pack one model's results for delivery: folder and archive, checksums, audit, environment."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import tarfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfd.errors import HfdError
from hfd.files import atomic_path, read_json, replace_folder, sha256_file
from hfd.judge.delivery import ABOUT, BESIDE, INCOMPLETE, PREFIX, SUMS
from hfd.judge.findings import FILES
from hfd.judge.report.pages import write_script
from hfd.judge.verdict import FAIL


@dataclass(frozen=True)
class Source:
    """What a delivery is made of.

    Attributes:
        model: its name.
        results: folder of its samples.
        audit: folder of its audit.
        environment: files to add.
    """

    model: str
    results: Path
    audit: Path
    environment: Sequence[Path] = ()


@dataclass(frozen=True)
class Delivery:
    """Where a delivery lies, and how many samples it holds."""

    folder: Path
    archive: Path
    samples: int


def deliver(source: Source, out: Path, anyway: bool) -> Delivery:
    """Make folder and archive, the same bytes for the same results.

    Args:
        source: what to pack.
        out: folder to put both into.
        anyway: pack what is incomplete or fails a rule, under a name that says so.

    Raises:
        HfdError: no audit of these results; or they are not ready and `anyway` is false.
    """
    summary = read_json(source.audit / "summary.json")
    if source.model not in summary.get("models", []):
        raise HfdError(
            f"the audit does not cover {source.model!r}",
            file=source.audit / "summary.json",
            remedy=f"Run snakemake audit_{source.model} first",
        )
    ids = delivered_ids(source.results)
    taken = sorted({*BESIDE, ABOUT, SUMS} & set(ids))
    if taken:
        raise HfdError(
            f"holds a sample called {taken[0]!r}, a name that a delivery needs itself",
            file=source.results,
            remedy="Give the sample another id",
        )
    reasons = problems(summary, source.model) + stale(summary, source.model, ids)
    if reasons and not anyway:
        raise HfdError(
            f"is not ready for delivery: {'; '.join(reasons)}",
            file=source.results,
            remedy="Mend it and audit again, or pack it with --anyway, marked INCOMPLETE",
        )
    name = f"{PREFIX}{source.model}" + (INCOMPLETE if reasons else "")
    target = out / name
    part = out / f".{name}.part"
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    try:
        fill(part, source, ids, reasons, summary)
        replace_folder(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    archive = pack(target)
    return Delivery(target, archive, len(ids))


def delivered_ids(results: Path) -> list[str]:
    """Samples with all four files."""
    if not results.is_dir():
        raise HfdError("there are no results", file=results)
    return sorted(
        path.name for path in results.iterdir() if all((path / name).is_file() for name in FILES)
    )


def problems(summary: dict[str, Any], model: str) -> list[str]:
    """Why a model's results may not be delivered as complete, one line each."""
    return [
        f"{code} fails ({verdict['reason']})"
        for code, verdict in summary["rules"][model].items()
        if verdict["status"] == FAIL
    ]


def stale(summary: dict[str, Any], model: str, ids: list[str]) -> list[str]:
    """Whether the audit was made of other results than these."""
    count = summary["coverage"][model]
    audited = count["ok"] + count["no_response"]
    return [] if audited == len(ids) else [f"the audit saw {audited} results, there are {len(ids)}"]


def fill(
    part: Path,
    source: Source,
    ids: list[str],
    reasons: list[str],
    summary: dict[str, Any],
) -> None:
    """Write everything but the archive into `part`."""
    for sample_id in ids:
        shutil.copytree(source.results / sample_id, part / sample_id)
    copy_report(source.audit, part / "audit", source.results)
    for path in source.environment:
        (part / "environment").mkdir(exist_ok=True)
        shutil.copyfile(path, part / "environment" / path.name)
    (part / ABOUT).write_text(
        json.dumps(
            {
                "model": source.model,
                "samples": len(ids),
                "complete": not reasons,
                "reasons": reasons,
                **made_of(summary, source.model),
                "verify": f"python scripts/verify_results.py {part.name[1:].removesuffix('.part')}",
            },
            indent=2,
            ensure_ascii=False,
        )
        + "\n",
        encoding="utf-8",
    )
    files = sorted(path for path in part.rglob("*") if path.is_file())
    sums = [f"{sha256_file(path)}  {path.relative_to(part).as_posix()}" for path in files]
    (part / SUMS).write_text("\n".join(sums) + "\n", encoding="utf-8")


def made_of(summary: dict[str, Any], model: str) -> dict[str, Any]:
    """Dates, code, weights and hardware of the results, as the audit saw them."""
    card = summary.get("cards", {}).get(model, {})
    found = {
        name: card.get(name, []) for name in ("made", "identity", "weights", "hardware", "clock")
    }
    about = summary.get("about", {})
    return found | {"code": about.get("code_versions", {}), "audited": about.get("made")}


def copy_report(audit: Path, target: Path, results: Path) -> None:
    """The audit with its pages and players; links lead to the samples beside it."""
    shutil.copytree(audit, target)
    before = f"{os.path.relpath(results, audit)}/"
    for page in (target / "samples").glob("*.js"):
        text = page.read_text(encoding="utf-8")
        value = json.loads(text[text.index("(") + 1 : text.rindex(")")].replace("<\\/", "</"))
        value["video"] = None  # the delivery holds no input
        for part in value["models"]:
            if part["files"] and part["files"].startswith(before):
                part["files"] = "../" + part["files"][len(before) :]
        write_script(page, "sample", value)


def pack(folder: Path) -> Path:
    """``<folder>.tar.gz``, the same bytes for the same files."""
    archive = folder.with_name(f"{folder.name}.tar.gz")
    with (
        atomic_path(archive) as path,
        path.open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=1, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            info = tarfile.TarInfo(f"{folder.name}/{file.relative_to(folder).as_posix()}")
            info.size, info.mode = file.stat().st_size, 0o644
            with file.open("rb") as stream:
                tar.addfile(info, stream)
    return archive
