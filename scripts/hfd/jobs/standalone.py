"""One model over a manifest without Snakemake: one folder of results per sample.

For a first look and for the team's old command lines: the worker's own loop, with the manifest as
one shard and no checks, retries or publishing around it (``snakemake results_<model>`` has those).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from hfd.data.manifest import Sample, read_manifest
from hfd.duplex.model import ModelBroken
from hfd.errors import HfdError
from hfd.jobs.sessions import Stopped
from hfd.jobs.spec import ModelSpec
from hfd.jobs.store import PlainStore
from hfd.jobs.worker import Shard, run_shard


def run_standalone(
    spec: ModelSpec,
    args: argparse.Namespace,
    *,
    max_lag_s: float = 0.5,
    wav_copies: Sequence[str] = (),
) -> int:
    """Run the chosen samples; those whose result is whole and still valid are kept.

    Args:
        spec: the model with its settings.
        args: what hfd.jobs.options.add_common_options parsed.
        max_lag_s: arrival clock: a unit sent later than this fails the sample.
        wav_copies: further names under which the wav is expected beside the result.

    Returns:
        Exit code: 0, or 1 if a sample failed.

    Raises:
        HfdError: manifest or settings are wrong, the model cannot be loaded or is beyond use.
    """
    if args.sessions is not None:
        spec = replace(spec, sessions=args.sessions)
    samples = read_manifest(args.manifest, args.root)
    if args.only is not None:
        samples = _chosen(samples, args.only, args.manifest)
    args.output_root.mkdir(parents=True, exist_ok=True)
    store = PlainStore(args.root, spec.name, args.output_root)
    shard = Shard(
        "by hand",
        samples,
        max_lag_s=max_lag_s,
        wav_copies=wav_copies,
        on_end=partial(_print_end, store),
    )
    try:
        tally = run_shard(spec, shard, store, partial(print, file=sys.stderr, flush=True))
    except Stopped:
        print("stopped; what is finished stays, the sample in flight was dropped", file=sys.stderr)
        return 143
    except ModelBroken as error:
        raise HfdError(
            f"the model is beyond use: {error}",
            file=args.output_root,
            remedy="What is finished stays: mend it, then run again",
        ) from error
    return 1 if "failed" in tally.ended.values() else 0


def _print_end(store: PlainStore, sample_id: str, how: str, answer: str | None) -> None:
    """One line for each sample on standard output; what failed, and where it is recorded."""
    if how == "failed":
        error = (store.error(sample_id) or {}).get("error")
        answer = f"failed: {error} ({store.error_file(sample_id)})"
    print(f"{sample_id}: {answer or 'kept'}", flush=True)


def _chosen(samples: Sequence[Sample], ids: Sequence[str], manifest: Path) -> list[Sample]:
    known = {sample.sample_id: sample for sample in samples}
    if unknown := [name for name in ids if name not in known]:
        raise HfdError(f"has no sample {unknown[0]!r}", file=manifest, field="--only")
    return [known[name] for name in dict.fromkeys(ids)]
