"""Print what is done, failed and missing of every model, and why. Usually: snakemake missing."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from hfd.errors import run_cli
from hfd.jobs.schedule import Schedule


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True, help="Snakemake's configuration, as JSON")
    args = parser.parse_args(argv)
    print(Schedule(json.loads(args.config), Path(), plan_anew=True).table())


if __name__ == "__main__":
    run_cli(main)
