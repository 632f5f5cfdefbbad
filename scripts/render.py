"""Make watchable videos of one model's results: user left, model right, captions at their times.

The last video frame is frozen until the model has finished; nothing is cut.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from hfd.data.manifest import read_manifest
from hfd.errors import HfdError, run_cli
from hfd.judge.rendering import render


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    samples = read_manifest(args.manifest, args.root, check_files=False)
    made = 0
    for sample in samples:
        source = args.results / args.model / sample.sample_id
        if (args.only and sample.sample_id not in args.only) or not source.is_dir():
            continue
        render(sample, source, args.out / f"{sample.sample_id}.mp4")
        made += 1
    if not made:
        raise HfdError("there is no result to render", file=args.results / args.model)
    print(f"{made} videos in {args.out}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--manifest", type=Path, default=Path("data/manifest.jsonl"))
    parser.add_argument("--root", type=Path, default=Path(), help="folder of the manifest's paths")
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--only", nargs="*", metavar="ID", help="these samples only")
    parser.add_argument("--out", type=Path, required=True)
    return parser


if __name__ == "__main__":
    run_cli(main)
