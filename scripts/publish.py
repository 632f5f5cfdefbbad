"""Copy one finished sample from a model's store to results/, after checking it whole."""

from __future__ import annotations

import argparse
from pathlib import Path

from hfd.errors import run_cli
from hfd.jobs.store import Store, publish


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True)
    parser.add_argument("--sample", required=True)
    parser.add_argument("--ticket", type=Path, required=True, help="of the sample's shard")
    args = parser.parse_args(argv)
    publish(Store(Path(), args.model), args.sample, args.ticket)


if __name__ == "__main__":
    run_cli(main)
