"""Compare two result folders of one manifest: what changed, what flipped, paired tests, report."""

from __future__ import annotations

import argparse
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hfd.data.manifest import read_manifest
from hfd.errors import HfdError, run_cli
from hfd.files import sha256_file
from hfd.judge.changes import changes, flipped
from hfd.judge.comparisons import PRIMARY
from hfd.judge.endpoints import RATE
from hfd.judge.report.index import write_index
from hfd.judge.report.pages import copy_assets
from hfd.judge.rules.rule import Policy
from hfd.judge.run import Job, ModelSource, run_audit
from hfd.judge.tables import write_csv, write_tables
from hfd.judge.transcript import read_transcripts

NAMES = ("first", "second")


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    samples = read_manifest(args.manifest, args.root, check_files=False)
    sources = tuple(_source(name, getattr(args, name)) for name in NAMES)
    args.out.mkdir(parents=True, exist_ok=True)
    job = Job(sources, args.checks, read_transcripts(args.transcripts), args.out, args.cache)
    audit = run_audit(samples, job, args.jobs, None)
    found = changes(*(audit.records[name] for name in NAMES))
    turned = flipped(*(audit.records[name] for name in NAMES))
    about: dict[str, Any] = {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "manifest_sha256": sha256_file(args.manifest),
        "samples": len(samples),
        "code_versions": {},
        "compared": {name: str(getattr(args, name)) for name in NAMES},
        "changes": found,
    }
    summary = write_tables(audit, args.out, about, args.primary)
    write_csv(args.out / "flipped.csv", turned)
    write_index(audit, args.out, summary)
    copy_assets(args.out)
    for name, (old, new) in found.items():
        print(f"{name}: {old} -> {new}")
    print(f"{len(turned)} of {len(samples)} samples have another outcome (flipped.csv)")
    print(f"report: {(args.out / 'index.html').resolve().as_uri()}")
    return 0


def _source(name: str, folder: Path) -> ModelSource:
    if folder == Path() or not folder.is_dir():
        raise HfdError(
            "is no folder of results",
            file=folder,
            field=name,
            remedy="snakemake compare --config first=results/old second=results/roma",
        )
    return ModelSource(name, folder, None, Policy(None))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=Path, required=True, help="the first folder of results")
    parser.add_argument("--second", type=Path, required=True, help="the second")
    parser.add_argument("--manifest", type=Path, default=Path("data/manifest.jsonl"))
    parser.add_argument("--root", type=Path, default=Path(), help="folder of the manifest's paths")
    parser.add_argument("--checks", type=Path, help="folder of the data checks")
    parser.add_argument("--transcripts", type=Path)
    parser.add_argument("--cache", type=Path, help="where player copies are kept between audits")
    parser.add_argument("--primary", choices=list(RATE), default=PRIMARY, help="primary endpoint")
    parser.add_argument("--out", type=Path, default=Path("results/compare"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    return parser


if __name__ == "__main__":
    run_cli(main)
