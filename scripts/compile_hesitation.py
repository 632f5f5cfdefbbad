"""Compile one raw hesitation row: source video + two recordings -> compiled video + adapter."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from hfd.data.compile import compile_sample
from hfd.data.raw import read_raw
from hfd.errors import HfdError, run_cli


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--raw", type=Path, required=True, help="raw manifest (JSON Lines)")
    parser.add_argument("--root", type=Path, default=Path(), help="folder its paths start from")
    parser.add_argument("--sample-id", required=True, help="which row (--sample-id=-x for -x)")
    parser.add_argument("--video", type=Path, required=True, help="compiled video to write")
    parser.add_argument("--adapter", type=Path, required=True, help="adapter to write")
    parser.add_argument("--fields", type=json.loads, default={}, help="raw.fields, as JSON")
    parser.add_argument("--full-first-question", choices=["refuse", "warn"], default="refuse")
    parser.add_argument("--recipe", help="refuse if the row's recipe is not this one")
    args = parser.parse_args(argv)

    rows = read_raw(args.raw, args.root, args.fields, check_files=False)
    if not any(row.sample_id == args.sample_id for row in rows):
        raise HfdError(f"has no row with id {args.sample_id!r}", file=args.raw)
    sample = next(row for row in rows if row.sample_id == args.sample_id)
    if args.recipe not in (None, sample.recipe):
        raise HfdError(
            "the row has changed since this run began", file=sample.place, remedy="Run it again"
        )
    for note in compile_sample(sample, args.video, args.adapter, args.full_first_question):
        print(f"note: {sample.sample_id}: {note}")
    print(f"{sample.sample_id}: compiled to {args.video}")


if __name__ == "__main__":
    run_cli(main)
