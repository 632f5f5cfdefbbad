"""Make the key that signs a witness's log: ``snakemake … --config witness=FOLDER`` then uses it.

Give the printed key (or key.pub.pem) to whoever will check the results, before the run.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from hfd.errors import run_cli
from hfd.jobs.witness import PUBLIC_KEY
from hfd.jobs.witness_log import make_key


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="gets key.pem and key.pub.pem")
    args = parser.parse_args(argv)
    print(make_key(args.folder))
    print(f"give {args.folder / PUBLIC_KEY} to whoever will check, before the run")


if __name__ == "__main__":
    run_cli(main)
