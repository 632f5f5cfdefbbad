"""Make samples of an outside set: its sound with a still frame, its events, its own scores."""

from __future__ import annotations

import argparse
from pathlib import Path

from hfd.data.outside import import_rows
from hfd.data.outside_sets import SETS
from hfd.errors import run_cli


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", choices=list(SETS), required=True)
    parser.add_argument(
        "--from", dest="source", type=Path, required=True, help="the set as it was unpacked"
    )
    parser.add_argument(
        "--out", type=Path, required=True, help="data folder to make, for example outside/fdb/data"
    )
    args = parser.parse_args(argv)
    rows = SETS[args.set](args.source)
    for number, row in enumerate(import_rows(rows, args.out), 1):
        print(f"{number}/{len(rows)} {row.sample_id}{f': {row.note}' if row.note else ''}")
    print(f"{args.out / 'manifest.jsonl'}: {len(rows)} samples")


if __name__ == "__main__":
    run_cli(main)
