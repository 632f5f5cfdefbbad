"""A model over canary samples: which words and colours it still knew when it was asked."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hfd.data.manifest import Sample
from hfd.files import read_json, sha256_file
from hfd.jobs.spec import ModelSpec
from hfd.jobs.worker import make_model
from hfd.judge.canary import answer_to
from hfd.stream.run import Run
from hfd.stream.session import run_sample


def ask(spec: ModelSpec, samples: Sequence[Sample], nonce: str, scratch: Path) -> dict[str, Any]:
    """Run the model over the samples; prints a line for each.

    Args:
        spec: the model's.
        samples: of scripts/canary_media.py; each row says what is to be known.
        nonce: with which they were made.
        scratch: folder for result folders, ``<scratch>/<sample>``.
    """
    model = make_model(spec)
    run = Run(spec.name, spec.module, spec.settings, spec.seed, model.load())
    answers, made = {}, {}
    try:
        for sample in samples:
            folder = scratch / sample.sample_id
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            run_sample(model, run, sample, folder, fingerprint="canary")
            provenance = read_json(folder / "provenance.json")
            made = provenance["model"]
            one = answer_to(folder, sample.row["canary"])
            print(
                f"{sample.sample_id}: {one['word']}: {one['said']!r}",
                "yes" if one["right"] else "no",
            )
            answers[sample.sample_id] = one | {
                "video_sha256": sha256_file(sample.video),
                "tail": provenance["trace"]["tail"],
            }
    finally:
        model.unload()
    identity = {key: made.get(key) for key in ("module", "weights", "settings")}
    return {
        "kind": "canary",
        "nonce": nonce,
        "model": {"model": spec.name, **identity},
        "samples": answers,
    }
