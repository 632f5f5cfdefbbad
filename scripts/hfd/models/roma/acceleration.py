"""Which implementation of the steps runs: CUDA graphs where capture works, else the plain one."""

from __future__ import annotations

import sys

import torch

from hfd.models.roma.checkpoint import Parts
from hfd.models.roma.settings import Settings
from hfd.models.roma.steps import Steps
from hfd.models.roma.steps_eager import EagerSteps
from hfd.models.roma.steps_graphs import GraphSteps


def make_steps(parts: Parts, settings: Settings) -> Steps:
    """The steps the settings ask for, warmed up.

    With ``acceleration: auto`` a GPU on which capture fails gets the plain path; that is said once
    on stderr and recorded in provenance. ``graphs`` lets the failure through.
    """
    torch.backends.cuda.matmul.allow_tf32 = settings.tf32
    torch.backends.cudnn.allow_tf32 = settings.tf32
    torch.backends.cudnn.deterministic = True  # some convolutions add up in any order otherwise
    wanted = settings.acceleration
    if wanted == "auto":
        wanted = "graphs" if parts.device.type == "cuda" else "eager"
    if wanted == "graphs":
        try:
            steps = GraphSteps(parts, settings, capture=parts.device.type == "cuda")
            steps.warm_up()
            return steps
        except RuntimeError as error:
            if settings.acceleration == "graphs":
                raise
            reason = str(error).splitlines()[0]
            print(f"roma: no CUDA graphs here ({reason}); plain steps", file=sys.stderr)
            torch.cuda.empty_cache()
    steps = EagerSteps(parts, settings)
    steps.warm_up()
    return steps
