"""What one inference job does: the worker over the shard's samples, its log and its ticket."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TextIO

from hfd.data.manifest import Sample, read_manifest
from hfd.duplex.model import ModelBroken
from hfd.errors import HfdError
from hfd.files import atomic_write, write_json
from hfd.jobs.plan import STORE_ONLY, read_plan
from hfd.jobs.sessions import Stopped
from hfd.jobs.spec import ModelSpec
from hfd.jobs.store import Store
from hfd.jobs.witness import Witness
from hfd.jobs.worker import Shard, run_shard
from hfd.secrets import scrub

EXIT_BROKEN = 3
EXIT_STOPPED = 143


def run_shard_job(
    spec: ModelSpec,
    shard: str,
    manifest: Path,
    gpus: int,
    log: Path,
    witness: Witness | None = None,
) -> int:
    """Run one shard of a model's plan in the working folder.

    Args:
        spec: the model.
        shard: the shard's name in work/<model>/plan.json.
        manifest: the list of samples.
        gpus: cards the model needs.
        log: file that the progress is added to.
        witness: where every attempt and its outcome is reported, or None.

    Returns:
        Exit code: 0 with failed samples too; `EXIT_BROKEN` or `EXIT_STOPPED`.

    Raises:
        HfdError: the model cannot start; a retry of the same job then ends at once.
    """
    store = Store(Path(), spec.name)
    samples = _members(manifest, store, shard)
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a", encoding="utf-8") as stream:
        say = _speaker(spec.name, stream)
        _stop_if_it_could_not_start(store, shard)
        say(f"shard {shard}: {len(samples)} samples")
        try:
            store_only = shard.endswith(STORE_ONLY)
            tally = run_shard(
                spec, Shard(shard, samples, store_only, gpus, witness=witness), store, say
            )
        except Stopped:
            text = "stopped; what is finished stays, the sample in flight was dropped"
            print(f"{datetime.now():%H:%M:%S} {spec.name} {text}", file=stream)
            return EXIT_STOPPED
        except ModelBroken as error:
            say(f"the model is beyond use: {error}")
            return EXIT_BROKEN
        except HfdError as error:
            say(f"error: {error}")
            with suppress(HfdError):  # a full disk may be the reason
                atomic_write(store.cannot_start(shard), scrub(error.problem))
            return 1
        except Exception as error:
            say(f"error: {error!r}")
            raise
        failed = [name for name, how in tally.ended.items() if how == "failed"]
        stored = len(tally.ended) - len(failed)
        say(f"{tally.computed} computed, {stored} in store, {len(failed)} failed")
    time = datetime.now().astimezone().isoformat(timespec="seconds")
    write_json(store.ticket(shard), {"shard": shard, "time": time, "samples": tally.ended})
    return 0


def _stop_if_it_could_not_start(store: Store, shard: str) -> None:
    """What the user has to mend fails at the first try, and not once more at every retry."""
    path = store.cannot_start(shard)
    if path.exists():
        raise HfdError(
            "nothing was tried again: the first try says what to mend",
            field=f"{store.model} {shard}",
        )


def _members(manifest: Path, store: Store, shard: str) -> list[Sample]:
    members = read_plan(store.plan).shards.get(shard)
    if members is None:
        raise HfdError(
            "has no such shard", file=store.plan, field=shard, remedy="Start snakemake again"
        )
    by_id = {sample.sample_id: sample for sample in read_manifest(manifest, Path(), False)}
    return [by_id[member] for member in members if member in by_id]


def _speaker(model: str, log: TextIO) -> Callable[[str], None]:
    """Print a line with the time to the terminal and the shard's log."""

    def say(text: str) -> None:
        line = scrub(f"{datetime.now():%H:%M:%S} {model} {text}")
        print(line, file=log, flush=True)
        with suppress(OSError):  # the terminal may be gone with the run that started this worker
            print(line, file=sys.stderr, flush=True)

    return say
