"""What all probes share: a loaded model, its runs, and the results that they belong to."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hfd.data.manifest import Sample
from hfd.duplex.model import DuplexModel
from hfd.duplex.units import Unit
from hfd.judge.probe import drawn, tails_digest
from hfd.judge.reruns import Outputs, outputs_of
from hfd.stream.run import Run
from hfd.stream.session import run_sample


@dataclass(frozen=True)
class Bench:
    """A loaded model with what its runs share.

    Attributes:
        model: loaded, with no sample open.
        run: what a worker's samples share.
        scratch: where runs are kept, as ``<sample>/<name of the run>``.
        results: the delivered results that the probe belongs to.
        draw: what probes draw pauses and delays from.
    """

    model: DuplexModel
    run: Run
    scratch: Path
    results: Path
    draw: random.Random = field(default_factory=random.Random)

    def folder(self, sample: Sample, name: str) -> Path:
        """Where a run of the sample is kept."""
        return self.scratch / sample.sample_id / name

    def runs(
        self,
        sample: Sample,
        name: str,
        seed: int | None = None,
        between: Callable[[Unit], Unit] | None = None,
    ) -> Path:
        """Run the sample, perhaps with another seed or disturbed (`run_sample`); its folder."""
        folder = self.folder(sample, name)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        run = self.run if seed is None else replace(self.run, seed=seed)
        run_sample(self.model, run, sample, folder, fingerprint="probe", between=between)
        return folder

    def outputs(
        self,
        sample: Sample,
        name: str,
        seed: int | None = None,
        between: Callable[[Unit], Unit] | None = None,
    ) -> Outputs:
        """What one run of the sample said."""
        return outputs_of(self.runs(sample, name, seed, between))


def bound_to(
    tails: Mapping[str, str], ids: Sequence[str], nonce: str, count: int
) -> dict[str, Any]:
    """The samples of a probe, drawn from `ids`, and the results that it belongs to."""
    digest = tails_digest(tails)
    return {
        "tails_sha256": digest,
        "nonce": nonce,
        "from": list(ids),
        "samples": drawn(ids, digest, nonce, count),
    }
