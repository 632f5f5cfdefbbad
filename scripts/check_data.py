"""Gather all checks: one table, a list of what is wrong, exit code 1 if any sample fails."""

from __future__ import annotations

import argparse
import csv
import io
from collections import Counter
from pathlib import Path
from typing import Any

from hfd.data.manifest import Sample, read_manifest
from hfd.errors import HfdError, run_cli
from hfd.files import atomic_write, read_json

_FACTS = ("frames", "samples", "width", "height", "video_sha256", "adapter_sha256")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--manifest", type=Path, required=True)
    parser.add_argument("--root", type=Path, default=Path(), help="folder its paths start from")
    parser.add_argument("--checks", type=Path, required=True, help="folder of check_sample's files")
    parser.add_argument("--table", type=Path, required=True, help="CSV to write")
    args = parser.parse_args(argv)

    samples = read_manifest(args.manifest, args.root, check_files=False)
    rows = [_row(sample, args.checks / f"{sample.sample_id}.json") for sample in samples]
    table = io.StringIO()
    writer = csv.DictWriter(table, ["sample_id", "task", "status", "wrong", *_FACTS])
    writer.writeheader()
    writer.writerows(rows)
    atomic_write(args.table, "\ufeff" + table.getvalue())

    counts = Counter(row["status"] for row in rows)
    for row in rows:
        if row["status"] != "ok":
            print(f"{row['status']:7} {row['sample_id']}: {row['wrong']}")
    summary = ", ".join(f"{counts[status]} {status}" for status in ("ok", "suspect", "fail"))
    print(f"{len(rows)} samples: {summary}. Table: {args.table}")
    if counts["fail"]:
        raise HfdError(
            f"{counts['fail']} of {len(rows)} samples failed their check", file=args.manifest
        )


def _row(sample: Sample, path: Path) -> dict[str, Any]:
    row = {"sample_id": sample.sample_id, "task": sample.task}
    if not path.is_file():
        return row | {"status": "fail", "wrong": "was not checked"}
    verdict = read_json(path)
    wrong = [f"{f['rule']}: {f['message']}" for f in verdict["findings"] if f["status"] != "ok"]
    facts = {name: verdict[name] for name in _FACTS}
    return row | {"status": verdict["status"], "wrong": "; ".join(wrong)} | facts


if __name__ == "__main__":
    run_cli(main)
