"""Which steps run: CUDA graphs where they can be captured, else the plain ones.

Nothing else falls back: a step that is captured wrong, or too little memory, is an error.
"""

from __future__ import annotations

import gc
import sys

import torch

from hfd.errors import HfdError
from hfd.models.graphs.compiler import what_kernels_lack
from hfd.models.roma.checkpoint import Parts
from hfd.models.roma.settings import Settings
from hfd.models.roma.steps import Steps
from hfd.models.roma.steps_eager import EagerSteps
from hfd.models.roma.steps_graphs import GraphSteps

UNSUPPORTED = ("operation not permitted when stream is capturing", "capture is not supported")
"""What CUDA and torch say where an operation cannot be captured."""
NO_MEMORY = ("out of memory", "ALLOC_FAILED")
"""What CUDA, triton and CUDA's libraries say where memory is lacking."""


def make_steps(parts: Parts, settings: Settings) -> Steps:
    """The steps the settings ask for, warmed up.

    With ``acceleration: auto`` a GPU on which capture is not supported gets the plain path; that is
    said once on stderr and recorded in provenance. ``graphs`` lets the failure through.

    Raises:
        HfdError: the GPU's memory does not suffice.
    """
    if parts.device.type == "cuda":
        torch.cuda.set_device(parts.device)  # streams, events and kernels follow the current one
    torch.backends.cuda.matmul.allow_tf32 = settings.tf32
    torch.backends.cudnn.allow_tf32 = settings.tf32
    torch.backends.cudnn.deterministic = True  # some convolutions add up in any order otherwise
    try:
        if wanted_steps(settings, parts.device) == "graphs":
            made = _graphs(parts, settings)
            if isinstance(made, GraphSteps):
                return made
            if settings.acceleration == "graphs":
                raise RuntimeError(made)
            give_back(parts.device)
            print(f"roma: no CUDA graphs here ({made}); plain steps", file=sys.stderr)
        steps = EagerSteps(parts, settings)
        steps.warm_up()
        return steps
    except RuntimeError as error:
        if not (reason := lack_of_memory(error)):
            raise
    give_back(parts.device)
    free, total = torch.cuda.mem_get_info(parts.device)
    raise HfdError(
        f"is {settings.max_media_s:g} s; the caches for it do not fit on the card ({reason});"
        f" {free / 1e9:.1f} of {total / 1e9:.1f} GB are free without them",
        field="settings.max_media_s",
        remedy="Lower it to the longest file there is (about 1 GB a minute), or free the card",
    )


def lack_of_memory(error: BaseException) -> str | None:
    """The first line that says that memory was lacking, or None if it was not.

    torch's own error, or what a library, the driver or the compiler of kernels says; an error while
    a capture is ended hides the one that ended it.
    """
    while True:
        text = str(error)
        if isinstance(error, torch.OutOfMemoryError) or any(w in text for w in NO_MEMORY):
            return text.splitlines()[0]
        before = error.__cause__ or error.__context__
        if before is None:
            return None
        error = before


def wanted_steps(settings: Settings, device: torch.device) -> str:
    """``graphs`` or ``eager``."""
    if settings.acceleration == "auto":
        return "graphs" if device.type == "cuda" else "eager"
    return settings.acceleration


def _graphs(parts: Parts, settings: Settings) -> GraphSteps | str:
    """Captured steps, or why this GPU cannot capture them."""
    try:
        captured = parts.device.type == "cuda"
        steps = GraphSteps(parts, settings, captured, fused=captured and kernels_can_be_made())
        steps.warm_up()
    except RuntimeError as error:
        if lack_of_memory(error) or not any(words in str(error) for words in UNSUPPORTED):
            raise
        return str(error).splitlines()[0]
    return steps


def kernels_can_be_made() -> bool:
    """Whether triton and the C compiler that it calls are there; said once if they are not."""
    missing = what_kernels_lack()
    if missing:
        print(f"roma: no fused kernels without {missing}; torch's own ones", file=sys.stderr)
    return missing is None


def give_back(device: torch.device) -> None:
    """Free what a failed attempt took; its error must not be held any more, as it holds it too."""
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
