"""One whole probe of a model: samples drawn, the model loaded, runs made and compared."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfd.data.manifest import Sample
from hfd.jobs.spec import ModelSpec
from hfd.jobs.worker import make_model
from hfd.judge.probe import read_tails
from hfd.probes import changed_sound, disturbed
from hfd.probes.bench import Bench, bound_to
from hfd.stream.run import Run


@dataclass(frozen=True)
class Asked:
    """What a probe is asked.

    Attributes:
        kind: of `changed_sound` or `disturbed`.
        results: the model's delivered results, ``<results>/<sample>/``.
        scratch: where its runs are kept.
        nonce: the auditor's word for drawing the samples.
        count: how many samples; None: 3 with a changed sound, else 4 (two at least).
    """

    kind: str
    results: Path
    scratch: Path
    nonce: str = ""
    count: int | None = None


def probe(spec: ModelSpec, samples: Sequence[Sample], asked: Asked) -> dict[str, Any]:
    """Run the probe; prints a line for each sample.

    Returns:
        What was found, with ``bound``: the results that it belongs to (`bound_to`).

    Raises:
        HfdError: there are too few results, or the probe says nothing of this model.
    """
    kind, tails = asked.kind, read_tails(asked.results)
    changes_sound = kind in changed_sound.KINDS
    if changes_sound:
        ids, count = changed_sound.candidates(samples, tails), asked.count or 3
    else:
        ids, count = disturbed.candidates(samples, tails), max(2, asked.count or 4)
    bound = bound_to(tails, ids, asked.nonce, count)
    by_id = {sample.sample_id: sample for sample in samples}
    chosen = [by_id[name] for name in bound["samples"]]
    model = make_model(spec)
    disturbed.check_clock(kind, model, spec.name)
    identity = model.load()
    run = Run(spec.name, spec.module, spec.settings, spec.seed, identity)
    bench = Bench(model, run, asked.scratch, asked.results, random.Random(asked.nonce))
    try:
        answer = (changed_sound if changes_sound else disturbed).probe(kind, bench, chosen)
    finally:
        model.unload()
    print("\n".join(_told(answer)))
    bound["weights"] = identity.weights
    return {"kind": kind, "model": spec.name, "bound": bound, **answer}


def _told(answer: dict[str, Any]) -> Iterable[str]:
    if "status" in answer:
        for name, one in answer["evidence"]["by_sample"].items():
            yield f"{name}: {one['status']}: {one['reason']}"
    else:
        for name, one in answer["samples"].items():
            yield f"{name}: " + ", ".join(f"{k} {v}" for k, v in one.items() if k != "seeds")
