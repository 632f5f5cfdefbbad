"""Run one model over the samples of one shard that have no valid result yet.

Runs in the model's own environment: numpy, soundfile, av, pyyaml and the model's packages.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from hfd.errors import run_cli


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="its name in $HFD_CONFIG")
    parser.add_argument("--shard", required=True, help="name of the shard in the model's plan")
    parser.add_argument("--manifest", type=Path, default=Path("data/manifest.jsonl"))
    parser.add_argument("--gpus", type=int, default=0, help="graphics cards the model needs")
    parser.add_argument("--log", type=Path, required=True, help="file the progress is added to")
    args = parser.parse_args(argv)
    from hfd.jobs.shard_job import run_shard_job
    from hfd.jobs.spec import ModelSpec, environment_config
    from hfd.jobs.witness import Witness, witness_folder

    spec = ModelSpec.from_environment(args.model)
    witness = Witness(spec.name) if witness_folder(environment_config()) else None
    return run_shard_job(spec, args.shard, args.manifest, args.gpus, args.log, witness)


if __name__ == "__main__":
    run_cli(main)
