"""Run ROMA over a manifest by hand: the team's command line over scripts/run_model.py's machinery.

The workflow does the same with shards, retries and audit: ``snakemake results_roma``.
"""

from __future__ import annotations

import argparse

from hfd.errors import run_cli
from hfd.jobs.options import add_common_options, parse_settings


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model-path", required=True, help="snapshot folder or hub id")
    parser.add_argument("--two-stage", action="store_true", help="listen, then speak (always so)")
    add_common_options(parser)
    args = parser.parse_args(argv)
    from hfd.jobs.spec import ModelSpec
    from hfd.jobs.standalone import run_standalone

    settings = {"model_path": args.model_path, **parse_settings(args.set)}
    return run_standalone(ModelSpec("roma", "roma", settings, args.seed), args)


if __name__ == "__main__":
    run_cli(main)
