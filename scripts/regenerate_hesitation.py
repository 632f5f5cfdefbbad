"""Put the compiled hesitation samples into data/: videos, adapters and manifest rows."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from hfd.data.raw import read_raw
from hfd.data.regenerate import Report, load_compiled, regenerate, remove_stale
from hfd.errors import run_cli


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--raw", type=Path, required=True, help="raw manifest (JSON Lines)")
    parser.add_argument("--manifest", type=Path, required=True, help="manifest to rewrite")
    parser.add_argument("--root", type=Path, default=Path(), help="folder their paths start from")
    parser.add_argument("--compiled", type=Path, required=True, help="folder of compiled samples")
    parser.add_argument("--fields", type=json.loads, default={}, help="raw.fields, as JSON")
    args = parser.parse_args(argv)

    samples = read_raw(args.raw, args.root, args.fields)
    report = regenerate(args.manifest, args.root, load_compiled(args.compiled, samples))
    remove_stale(args.compiled, samples)
    _print(report, args.manifest)


def _print(report: Report, manifest: Path) -> None:
    for name, (old, new) in report.files.items():
        print(f"{name}: {old or 'new'} -> {new}")
    print(
        f"{manifest}: {len(report.replaced)} hesitation rows replaced, {len(report.added)} added, "
        f"{len(report.files)} files changed"
    )
    print(
        f"{manifest}: {report.kept} other rows unchanged, "
        f"SHA-256 {report.kept_sha256} before and after"
    )


if __name__ == "__main__":
    run_cli(main)
