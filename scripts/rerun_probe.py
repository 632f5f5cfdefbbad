"""Run a few samples again under other circumstances, and say what of the outputs changed.

``repeat``      the same sample several times, with its own seed and with others (noise floor)
``pause``       with random pauses between steps: a virtual clock's result may not notice
``cache``       the same sample twice in a row: nothing of the first may be left
``neighbour``   after another sample, in both orders: nothing leaks
``vision``      with the video frozen from the first word on, and with another sample's frames
``jitter``      units late by a recorded schedule and frames lost (models on servers)

Samples are drawn from a hash of the delivered results and a nonce of the auditor's; the unchanged
run of each is compared with what was delivered. Runs in the model's own environment; result folders
stay under the scratch folder and never mix with results.
"""

from __future__ import annotations

import argparse
import random
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from hfd.data.adapter import read_adapter
from hfd.data.altered import frozen_from, with_frames_of
from hfd.data.manifest import Sample, read_manifest
from hfd.duplex.model import DuplexModel
from hfd.duplex.units import Unit
from hfd.errors import HfdError, run_cli
from hfd.files import write_json
from hfd.jobs.spec import ModelSpec
from hfd.jobs.worker import make_model
from hfd.judge.probe import drawn, read_tails, rerun_ids, tails_digest
from hfd.judge.reruns import Outputs, difference, outputs_of
from hfd.stream import session
from hfd.stream.run import Run

CLOCK = {"pause": "virtual", "jitter": "arrival"}
"""Probes that say something on one clock only."""
PLAIN = {
    "repeat": "same0",
    "pause": "plain",
    "cache": "first",
    "neighbour": "alone",
    "vision": "plain",
    "jitter": "plain",
}
"""The run of each probe that nothing disturbs."""
RUNS = 3
MOST_PAUSE_S = 0.05
LATE_S = 0.2
LOST_FRAMES = 0.3


@dataclass(frozen=True)
class Bench:
    """A loaded model with what its runs share, and where they are kept."""

    model: DuplexModel
    run: Run
    scratch: Path
    draw: random.Random

    def outputs(self, sample: Sample, name: str, seed: int | None = None) -> Outputs:
        """What one run of the sample said; its result folder is kept as ``<id>/<name>``."""
        folder = self.scratch / sample.sample_id / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        run = self.run if seed is None else replace(self.run, seed=seed)
        session.run_sample(self.model, run, sample, folder, fingerprint="probe")
        return outputs_of(folder)


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    spec = ModelSpec.from_environment(args.model)
    samples = read_manifest(args.manifest, args.root)
    tails = read_tails(args.results)
    bound = bound_to(samples, tails, args.nonce, args.samples)
    by_id = {sample.sample_id: sample for sample in samples}
    chosen = [by_id[name] for name in bound["samples"]]
    model = make_model(spec)
    clock = model.capabilities.clock
    if clock != CLOCK.get(args.kind, clock):
        raise HfdError(
            f"runs on the {clock} clock, for which a {args.kind} probe says nothing",
            field=args.model,
            remedy="Pauses concern models on the virtual clock, jitter models on servers",
        )
    run = Run(spec.name, spec.module, spec.settings, spec.seed, model.load())
    bench = Bench(model, run, args.scratch, random.Random(args.nonce))
    try:
        found = {s.sample_id: KINDS[args.kind](bench, s, chosen) for s in chosen}
        for sample_id, one in found.items():
            plain = outputs_of(args.scratch / sample_id / PLAIN[args.kind])
            one["as_delivered"] = not difference(outputs_of(args.results / sample_id), plain)
    finally:
        model.unload()
    write_json(
        args.out,
        {"kind": args.kind, "model": args.model, "bound": bound, "samples": found},
    )
    for sample_id, one in found.items():
        print(f"{sample_id}: " + ", ".join(f"{k} {v}" for k, v in one.items() if k != "seeds"))
    return 0


def bound_to(
    samples: Sequence[Sample], tails: Mapping[str, str], nonce: str, count: int
) -> dict[str, Any]:
    """The samples of a probe, and the results that it belongs to.

    Raises:
        HfdError: fewer than two samples have a result.
    """
    ids, digest = rerun_ids(samples, tails), tails_digest(tails)
    if len(ids) < 2:
        raise HfdError(
            f"has {len(ids)} samples with a result, two are needed",
            field="manifest",
            remedy="Run the model first: a probe belongs to results",
        )
    return {
        "tails_sha256": digest,
        "nonce": nonce,
        "from": ids,
        "samples": drawn(ids, digest, nonce, max(2, count)),
    }


def repeat(bench: Bench, sample: Sample, _: list[Sample]) -> dict[str, Any]:
    """Runs with the sample's own seed, and as many with others."""
    same = [bench.outputs(sample, f"same{n}") for n in range(RUNS)]
    others = [bench.run.seed + 1 + n for n in range(RUNS)]
    other = [bench.outputs(sample, f"other{n}", seed) for n, seed in enumerate(others)]
    return {
        "same_seed_equal": all(not difference(same[0], run) for run in same),
        "other_seed_equal": all(not difference(same[0], run) for run in other),
        "onsets_s": [run.onset_s for run in same],
        "onsets_other_seed_s": [run.onset_s for run in other],
        "seeds": [bench.run.seed, *others],
    }


def pause(bench: Bench, sample: Sample, _: list[Sample]) -> dict[str, Any]:
    """The worker sleeps at random between steps."""
    plain = bench.outputs(sample, "plain")

    def rest(unit: Unit) -> Unit:
        time.sleep(bench.draw.uniform(0, MOST_PAUSE_S))
        return unit

    with _between_units(rest):
        paused = bench.outputs(sample, "paused")
    return _compared(plain, paused)


def cache(bench: Bench, sample: Sample, _: list[Sample]) -> dict[str, Any]:
    """The same sample twice in a row."""
    return _compared(bench.outputs(sample, "first"), bench.outputs(sample, "second"))


def neighbour(bench: Bench, sample: Sample, chosen: list[Sample]) -> dict[str, Any]:
    """After another sample, and that one after this."""
    other = next(s for s in chosen if s.sample_id != sample.sample_id)
    alone = bench.outputs(sample, "alone")
    other_after = bench.outputs(other, f"after {sample.sample_id}")
    after = bench.outputs(sample, f"after {other.sample_id}")
    other_again = bench.outputs(other, "again")
    found = _compared(alone, after)
    found["other_equal"] = not difference(other_after, other_again)
    return found


def vision(bench: Bench, sample: Sample, chosen: list[Sample]) -> dict[str, Any]:
    """Does another video frame change the answer? A number, never a pass or fail."""
    other = next(s for s in chosen if s.sample_id != sample.sample_id)
    events = read_adapter(sample.adapter).events if sample.adapter else ()
    start = min((event.start for event in events), default=0.0)
    plain, again = bench.outputs(sample, "plain"), bench.outputs(sample, "again")
    folder = bench.scratch / sample.sample_id
    frozen, swapped = folder / "frozen.mp4", folder / "swapped.mp4"
    frozen_from(sample.video, start, frozen)
    with_frames_of(sample.video, other.video, swapped)
    runs = {
        "frozen": bench.outputs(replace(sample, video=frozen), "frozen"),
        "swapped": bench.outputs(replace(sample, video=swapped), "swapped"),
    }
    return {
        "deterministic": not difference(plain, again),
        **{f"{name}_changes_text": run.text != plain.text for name, run in runs.items()},
        **{f"{name}_changes_anything": bool(difference(plain, run)) for name, run in runs.items()},
    }


def jitter(bench: Bench, sample: Sample, _: list[Sample]) -> dict[str, Any]:
    """Once a second or so a unit up to 0.2 s late, and three frames in ten lost."""
    schedule: list[float] = []
    often = bench.model.capabilities.unit_samples / 16_000
    push = bench.model.push

    def late(unit: Unit) -> None:
        schedule.append(
            round(bench.draw.uniform(0, LATE_S), 3) if bench.draw.random() < often else 0
        )
        time.sleep(schedule[-1])
        push(unit)

    def lose(unit: Unit) -> Unit:
        kept = tuple(f for f in unit.taken if bench.draw.random() >= LOST_FRAMES)
        return replace(unit, taken=kept)

    plain = bench.outputs(sample, "plain")
    bench.model.push = late  # type: ignore[method-assign]
    try:
        with _between_units(lose):
            disturbed = bench.outputs(sample, "disturbed")
    finally:
        bench.model.push = push  # type: ignore[method-assign]
    found = _compared(plain, disturbed)
    return found | {"late_s": schedule, "status": disturbed.status}


KINDS: Mapping[str, Callable[[Bench, Sample, list[Sample]], dict[str, Any]]] = {
    "repeat": repeat,
    "pause": pause,
    "cache": cache,
    "neighbour": neighbour,
    "vision": vision,
    "jitter": jitter,
}


def _compared(one: Outputs, other: Outputs) -> dict[str, Any]:
    what = difference(one, other)
    return {"equal": not what, "differs_in": what, "onsets_s": [one.onset_s, other.onset_s]}


@contextmanager
def _between_units(change: Callable[[Unit], Unit]) -> Iterator[None]:
    """Do something with each unit before it is given over, outside of the model's steps."""
    plain = session.with_frames_taken

    def disturbed(*args: Any) -> Iterator[Unit]:
        for unit in plain(*args):
            yield change(unit)

    session.with_frames_taken = disturbed  # type: ignore[assignment]
    try:
        yield
    finally:
        session.with_frames_taken = plain


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=list(KINDS))
    parser.add_argument("--model", required=True, help="its name in $HFD_CONFIG")
    parser.add_argument("--manifest", type=Path, default=Path("data/manifest.jsonl"))
    parser.add_argument("--root", type=Path, default=Path(), help="folder of the manifest's paths")
    parser.add_argument("--samples", type=int, default=4, help="how many samples; default 4")
    parser.add_argument("--results", type=Path, required=True, help="the results it belongs to")
    parser.add_argument("--nonce", default="", help="the auditor's word for drawing the samples")
    parser.add_argument("--scratch", type=Path, required=True, help="folder for files and runs")
    parser.add_argument("--out", type=Path, required=True, help="what was found, as JSON")
    return parser


if __name__ == "__main__":
    run_cli(main)
