"""ROMA for measurements through the worker: its sessions are kept, and its codes are noted."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from functools import cache
from typing import Any

import torch

from hfd.duplex.model import Emit, SampleInfo
from hfd.models.roma.checkpoint import Parts, load_snapshot
from hfd.models.roma.model import Roma
from hfd.models.roma.settings import Settings
from hfd.models.roma.steps import Steps
from hfd.models.roma.unit import Grid
from hfd.models.roma.vocoder import Vocoder
from roma_model import random_parts

RANDOM = "random"
"""As `model_path`: full size, random weights, on the GPU."""
GRIDS: list[Grid] = []
"""Of video frames; what they need is made before anything is measured."""
CODES: dict[str, Any] = {}
"""Digest of all codes, by sample."""
_FREE: list[Steps] = []
_HERE = threading.local()


class KeptRoma(Roma):
    """The real runner. A worker that ends leaves its warmed-up steps to the next one."""

    def load_parts(self) -> Parts:
        return _parts(self.settings)

    def make_steps(self, parts: Parts) -> Steps:
        if _FREE:
            return _FREE.pop(0)
        steps = super().make_steps(parts)
        with torch.no_grad():
            for grid in GRIDS:
                steps.begin(grid)
        return steps

    def open(self, sample: SampleInfo, emit: Emit) -> None:
        _HERE.sample = sample.sample_id
        CODES[sample.sample_id] = hashlib.sha256()
        super().open(sample, emit)

    def unload(self) -> None:
        _FREE.append(self._steps)


@cache  # a card has room for one
def _parts(settings: Settings) -> Parts:
    if settings.model_path == RANDOM:
        return random_parts(torch.device("cuda:0"))
    return load_snapshot(settings)


def note_codes() -> None:
    """From now on the codes of every sample are digested, on whichever thread it runs."""
    add = Vocoder.add

    def noted(vocoder: Vocoder, code: int) -> None:
        CODES[_HERE.sample].update(code.to_bytes(2, "big"))
        add(vocoder, code)

    Vocoder.add = noted


def digests_of(samples: Sequence[str]) -> dict[str, str]:
    """Digests of the codes so far, by sample; they are forgotten."""
    found = {name: CODES[name].hexdigest() for name in samples if name in CODES}
    CODES.clear()
    return found


MODEL = KeptRoma
