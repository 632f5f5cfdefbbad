"""Pack one model's results for delivery: folder and archive with checksums, audit and environment.

Refuses when samples are missing or a rule fails; ``--anyway`` packs them under a name that says so,
with the reasons in the folder.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from hfd.errors import run_cli
from hfd.judge.packing import Source, deliver


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    source = Source(args.model, args.results / args.model, args.audit, args.environment)
    made = deliver(source, args.out, args.anyway)
    print(f"{made.samples} samples in {made.folder} and {made.archive}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--results", type=Path, default=Path("results"))
    parser.add_argument("--audit", type=Path, required=True, help="folder of the model's audit")
    parser.add_argument("--environment", type=Path, nargs="*", default=[], help="files to add")
    parser.add_argument("--out", type=Path, default=Path("results/delivery"))
    parser.add_argument("--anyway", action="store_true", help="pack and mark what is not complete")
    return parser


if __name__ == "__main__":
    run_cli(main)
