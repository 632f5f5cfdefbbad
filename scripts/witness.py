"""Add one entry to the witness's log: JSON on standard input, the folder from $HFD_CONFIG.

Workers start it in the workflow's own environment.
"""

from __future__ import annotations

import json
import sys

from hfd.errors import run_cli
from hfd.jobs.spec import environment_config
from hfd.jobs.witness import witness_folder
from hfd.jobs.witness_log import append


def main(argv: list[str] | None = None) -> None:
    config = environment_config()
    folder = witness_folder(config)
    if folder is not None:
        append(folder, json.load(sys.stdin), config["witness_tsa"])


if __name__ == "__main__":
    run_cli(main)
