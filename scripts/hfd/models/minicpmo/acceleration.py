"""Which loop runs: upstream's plain one, or the same one on captured steps."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from PIL import Image
from torch.nn.utils import parametrize

from hfd.models.graphs.capture import Lane
from hfd.models.minicpmo.drawing import Drawing, agrees
from hfd.models.minicpmo.flow import FlowSolver
from hfd.models.minicpmo.reader import Reader, Talker, take_over
from hfd.models.minicpmo.settings import Settings
from hfd.models.minicpmo.vision import Beside, CapturedEncoder, Preparer, make_look_ahead


@dataclass(frozen=True)
class Faster:
    """What was put into upstream's loop.

    Attributes:
        facts: for provenance.
        look_ahead: captures what images of these sizes need, given them and into how many slices
            they are cut; None where nothing is captured.
    """

    facts: Mapping[str, Any]
    look_ahead: Callable[[Sequence[Image.Image], Any], None] | None = None


def accelerate(duplex: Any, settings: Settings, device: torch.device, voice_path: str) -> Faster:
    """Put captured steps into upstream's loop, if the settings and the device ask for it.

    With ``acceleration: auto`` a GPU on which capture fails gets the plain loop; that is said once
    on stderr and recorded. ``graphs`` lets the failure through.
    """
    wanted = settings.acceleration
    if wanted == "auto":
        wanted = "graphs" if device.type == "cuda" else "eager"
    if wanted == "graphs":
        try:
            return _use_graphs(duplex, settings, device, voice_path)
        except RuntimeError as error:
            if settings.acceleration == "graphs":
                raise
            reason = str(error).splitlines()[0]
            print(f"minicpmo: no CUDA graphs here ({reason}); the plain loop", file=sys.stderr)
            torch.cuda.empty_cache()
    return Faster({"acceleration": "eager"})


@torch.no_grad()
def _use_graphs(duplex: Any, settings: Settings, device: torch.device, voice_path: str) -> Faster:
    """Make and capture everything, and only then replace anything."""
    model = duplex.model
    lane, side = (Lane.make(device) if device.type == "cuda" else None for _ in range(2))
    beside = Beside(side)
    positions = int(model.config.max_position_embeddings)
    reader = Reader(model.llm, positions, lane, beside.join)
    talker = Talker(model.tts.model, int(model.tts.config.max_position_embeddings), lane)
    solver = None
    if lane is not None:
        reader.warm_up()
        talker.warm_up()
        solver = _make_solver(duplex, settings, lane, voice_path)
        torch.cuda.synchronize(device)
    draw = _faster_drawing(duplex, settings, lane)
    take_over(duplex.decoder, reader)
    if draw is not None:
        duplex.decoder.decode = draw
    model.tts.model.forward = talker.forward
    _bake_norms(model.tts.head_code)
    if solver is not None:
        model.tts.audio_tokenizer.flow.decoder.forward_chunk = solver.forward_chunk
        _bake_norms(model.tts.audio_tokenizer.hift)
    encoder = CapturedEncoder(model.vpm.encoder, side)
    model.vpm.encoder.forward = encoder.forward
    model.get_vision_embedding = beside.wrap(model.get_vision_embedding)
    preparer = Preparer(duplex.processor, beside, device)
    duplex.processor.process_image = preparer
    facts = {
        "acceleration": "graphs",
        "captured": lane is not None,
        "captured_vocoder": solver is not None,
        "drawing": "upstream's" if draw is None else "vectorised",
    }
    return Faster(facts, make_look_ahead(duplex, preparer, encoder, device))


def _bake_norms(module: torch.nn.Module) -> None:
    """Keep the weights that weight norms would compute anew at every call: the same numbers."""
    for part in list(module.modules()):
        if parametrize.is_parametrized(part, "weight"):
            parametrize.remove_parametrizations(part, "weight", leave_parametrized=True)


def _make_solver(duplex: Any, settings: Settings, lane: Lane, voice_path: str) -> FlowSolver | None:
    vocoder = duplex.model.tts.audio_tokenizer
    if not hasattr(getattr(vocoder.flow, "decoder", None), "forward_chunk"):
        return None
    with contextlib.redirect_stdout(sys.stderr):
        cache, _ = vocoder.set_stream_cache(voice_path)
    cache = {name: part.clone() for name, part in cache.items()}
    solver = FlowSolver(vocoder.flow.decoder, lane)
    solver.warm_up(cache, settings.num_steps)
    return solver


def _faster_drawing(
    duplex: Any, settings: Settings, lane: Lane | None
) -> Callable[..., torch.Tensor] | None:
    """What draws text tokens as upstream does, if it is shown to be the same."""
    decoder, weight = duplex.decoder, duplex.model.llm.lm_head.weight
    arguments = {"mode": settings.decode, **settings.drawing}
    faster = Drawing(decoder, weight.new_zeros(weight.shape[0]), lane).decode
    return faster if agrees(decoder, faster, arguments, weight.shape[0], weight) else None
