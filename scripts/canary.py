"""Run a model over canary samples, and say which words and colours it still knew when asked.

Runs in the model's own environment, by the session that makes results; result folders stay under
the scratch folder and never mix with results.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from hfd.data.manifest import read_manifest
from hfd.errors import run_cli
from hfd.files import write_json
from hfd.jobs.spec import ModelSpec
from hfd.probes.canary import ask


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    spec = ModelSpec.from_environment(args.model)
    samples = read_manifest(args.media / "manifest.jsonl", args.media)
    write_json(args.out, ask(spec, samples, args.nonce, args.scratch))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="its name in $HFD_CONFIG")
    parser.add_argument("--media", type=Path, required=True, help="folder of canary_media.py")
    parser.add_argument("--nonce", required=True, help="with which the media were made")
    parser.add_argument("--scratch", type=Path, required=True, help="folder for result folders")
    parser.add_argument("--out", type=Path, required=True, help="what was found, as JSON")
    return parser


if __name__ == "__main__":
    run_cli(main)
