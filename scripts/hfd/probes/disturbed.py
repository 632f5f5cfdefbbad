"""Probes that run a sample under other circumstances, and say what of the outputs changed.

*repeat*: the same sample several times, with its own seed and with others (noise floor). *pause*:
with random pauses between steps, of which a virtual clock's result may not tell. *cache*: the same
sample twice in a row, nothing of the first may be left. *neighbour*: after another sample, in both
orders. *vision*: with the video frozen from the first word on, and with another sample's frames.
*jitter*: units late by a recorded schedule and frames lost (models on servers).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from hfd.data.adapter import read_adapter
from hfd.data.altered import frozen_from, with_frames_of
from hfd.data.manifest import Sample
from hfd.duplex.model import DuplexModel
from hfd.duplex.units import Unit
from hfd.errors import HfdError
from hfd.judge.probe import rerun_ids
from hfd.judge.reruns import Outputs, difference, outputs_of
from hfd.media_time import SAMPLE_RATE
from hfd.probes.bench import Bench

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


def check_clock(kind: str, model: DuplexModel, name: str) -> None:
    """Refuse a probe that says nothing of the model.

    Raises:
        HfdError: its clock is not the one that the probe disturbs.
    """
    clock = model.capabilities.clock
    if clock != CLOCK.get(kind, clock):
        raise HfdError(
            f"runs on the {clock} clock, for which a {kind} probe says nothing",
            field=name,
            remedy="Pauses concern models on the virtual clock, jitter models on servers",
        )


def candidates(samples: Sequence[Sample], tails: Mapping[str, str]) -> list[str]:
    """The samples that can be probed (`rerun_ids`).

    Raises:
        HfdError: fewer than two samples have a result.
    """
    ids = rerun_ids(samples, tails)
    if len(ids) < 2:
        raise HfdError(
            f"has {len(ids)} samples with a result, two are needed",
            field="manifest",
            remedy="Run the model first: a probe belongs to results",
        )
    return ids


def probe(kind: str, bench: Bench, chosen: Sequence[Sample]) -> dict[str, Any]:
    """What was found of each sample, and whether its plain run is the delivered one."""
    found = {sample.sample_id: KINDS[kind](bench, sample, chosen) for sample in chosen}
    for sample in chosen:
        plain = outputs_of(bench.folder(sample, PLAIN[kind]))
        delivered = outputs_of(bench.results / sample.sample_id)
        found[sample.sample_id]["as_delivered"] = not difference(delivered, plain)
    return {"samples": found}


def repeat(bench: Bench, sample: Sample, _: Sequence[Sample]) -> dict[str, Any]:
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


def pause(bench: Bench, sample: Sample, _: Sequence[Sample]) -> dict[str, Any]:
    """The worker sleeps at random between steps."""
    plain = bench.outputs(sample, "plain")

    def rest(unit: Unit) -> Unit:
        time.sleep(bench.draw.uniform(0, MOST_PAUSE_S))
        return unit

    return _compared(plain, bench.outputs(sample, "paused", between=rest))


def cache(bench: Bench, sample: Sample, _: Sequence[Sample]) -> dict[str, Any]:
    """The same sample twice in a row."""
    return _compared(bench.outputs(sample, "first"), bench.outputs(sample, "second"))


def neighbour(bench: Bench, sample: Sample, chosen: Sequence[Sample]) -> dict[str, Any]:
    """After another sample, and that one after this."""
    other = next(s for s in chosen if s.sample_id != sample.sample_id)
    alone = bench.outputs(sample, "alone")
    other_after = bench.outputs(other, f"after {sample.sample_id}")
    after = bench.outputs(sample, f"after {other.sample_id}")
    other_again = bench.outputs(other, "again")
    found = _compared(alone, after)
    found["other_equal"] = not difference(other_after, other_again)
    return found


def vision(bench: Bench, sample: Sample, chosen: Sequence[Sample]) -> dict[str, Any]:
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


def jitter(bench: Bench, sample: Sample, _: Sequence[Sample]) -> dict[str, Any]:
    """Once a second or so a unit up to 0.2 s late, and three frames in ten lost."""
    draw = bench.draw
    often = bench.model.capabilities.unit_samples / SAMPLE_RATE
    late = _Late(bench.model, lambda: draw.uniform(0, LATE_S) if draw.random() < often else 0.0)

    def lose(unit: Unit) -> Unit:
        return replace(unit, taken=tuple(f for f in unit.taken if draw.random() >= LOST_FRAMES))

    plain = bench.outputs(sample, "plain")
    worse = replace(bench, model=cast(DuplexModel, late))
    disturbed = worse.outputs(sample, "disturbed", between=lose)
    found = _compared(plain, disturbed)
    return found | {"late_s": late.schedule, "status": disturbed.status}


class _Late:
    """A model whose units are given over late; `schedule` says by how many seconds each."""

    def __init__(self, model: DuplexModel, delay_s: Callable[[], float]) -> None:
        self._model, self._delay_s = model, delay_s
        self.schedule: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def push(self, unit: Unit) -> None:
        self.schedule.append(round(self._delay_s(), 3))
        time.sleep(self.schedule[-1])
        self._model.push(unit)


KINDS: Mapping[str, Callable[[Bench, Sample, Sequence[Sample]], dict[str, Any]]] = {
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
