"""Run one model over the samples of one shard that have no valid result yet.

Runs in the model's own environment: numpy, soundfile, av, pyyaml and the model's packages.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TextIO

from hfd.data.manifest import Sample, read_manifest
from hfd.duplex.model import ModelBroken
from hfd.errors import HfdError, run_cli
from hfd.files import write_json
from hfd.jobs.plan import STORE_ONLY, read_plan
from hfd.jobs.spec import ModelSpec
from hfd.jobs.store import Store
from hfd.jobs.worker import Shard, Stopped, run_shard

EXIT_BROKEN = 3
EXIT_STOPPED = 143


def main(argv: list[str] | None = None) -> int:
    args = _parse(argv)
    spec = ModelSpec.from_json(args.spec)
    store = Store(Path(), spec.name)
    samples = _members(args.manifest, store, args.shard)
    shard = Shard(args.shard, samples, args.shard.endswith(STORE_ONLY), args.gpus)
    args.log.parent.mkdir(parents=True, exist_ok=True)
    with args.log.open("a", encoding="utf-8") as log:
        say = _speaker(spec.name, log)
        say(f"shard {args.shard}: {len(samples)} samples")
        try:
            tally = run_shard(spec, shard, store, say)
        except Stopped:
            say("stopped by SIGTERM; what is finished stays, the sample in flight was dropped")
            return EXIT_STOPPED
        except ModelBroken as error:
            say(f"the model is beyond use: {error}")
            return EXIT_BROKEN
        except Exception as error:
            say(f"error: {error}" if isinstance(error, HfdError) else f"error: {error!r}")
            raise
        failed = [name for name, how in tally.ended.items() if how == "failed"]
        stored = len(tally.ended) - len(failed)
        say(f"{tally.computed} computed, {stored} in store, {len(failed)} failed")
    time = datetime.now().astimezone().isoformat(timespec="seconds")
    write_json(
        store.ticket(args.shard), {"shard": args.shard, "time": time, "samples": tally.ended}
    )
    return 0


def _members(manifest: Path, store: Store, shard: str) -> list[Sample]:
    members = read_plan(store.plan).shards.get(shard)
    if members is None:
        raise HfdError(
            "has no such shard", file=store.plan, field=shard, remedy="Start snakemake again"
        )
    by_id = {sample.sample_id: sample for sample in read_manifest(manifest, Path(), False)}
    return [by_id[member] for member in members if member in by_id]


def _speaker(model: str, log: TextIO):
    """Print a line with the time to the terminal and the shard's log."""

    def say(text: str) -> None:
        line = f"{datetime.now():%H:%M:%S} {model} {text}"
        print(line, file=log, flush=True)
        with suppress(OSError):  # the terminal may be gone with the run that started this worker
            print(line, file=sys.stderr, flush=True)

    return say


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--spec", required=True, help="the model, as one line of JSON")
    parser.add_argument("--shard", required=True, help="name of the shard in the model's plan")
    parser.add_argument("--manifest", type=Path, default=Path("data/manifest.jsonl"))
    parser.add_argument("--gpus", type=int, default=0, help="graphics cards the model needs")
    parser.add_argument("--log", type=Path, required=True, help="file the progress is added to")
    return parser.parse_args(argv)


if __name__ == "__main__":
    run_cli(main)
