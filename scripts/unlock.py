"""Clear what a killed run left locked, never what a living run holds.

Snakemake runs of this repository do this by themselves. By hand it is needed when the dead run was
started on another host, whose processes cannot be seen from here: name it with --dead.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from hfd.errors import HfdError, run_cli
from hfd.jobs.runlock import clear_stale_lock, is_held, other_runs


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=Path, default=Path(), help="snakemake's working folder")
    parser.add_argument("--dead", help="HOST:PID of a run that you know to be dead")
    args = parser.parse_args(argv)
    for run in other_runs(args.directory):
        if f"{run.host}:{run.pid}" != args.dead or is_held(run.file):
            raise HfdError(
                f"is the lock of a run that may live ({run})",
                file=run.file,
                remedy=f"If that process is dead, run again with --dead {run.host}:{run.pid}",
            )
        run.file.unlink()
    print(clear_stale_lock(args.directory) or "nothing is locked")


if __name__ == "__main__":
    run_cli(main)
