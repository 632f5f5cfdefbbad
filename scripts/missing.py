"""Print what is done, failed and missing of every model, and why. Usually: snakemake missing."""

from __future__ import annotations

import argparse
from pathlib import Path

from hfd.errors import run_cli


def main(argv: list[str] | None = None) -> None:
    argparse.ArgumentParser(description=__doc__).parse_args(argv)
    from hfd.jobs.schedule import Schedule
    from hfd.jobs.spec import environment_config

    config = environment_config()
    print(Schedule(config, Path(), plan_anew=True).table(config["models"]))


if __name__ == "__main__":
    run_cli(main)
