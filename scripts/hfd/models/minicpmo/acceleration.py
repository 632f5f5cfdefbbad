"""Which loop runs: upstream's plain one, or the same one on captured steps."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import torch

from hfd.models.graphs.capture import Lane
from hfd.models.minicpmo.drawing import agrees, make_decode
from hfd.models.minicpmo.flow import FlowSolver
from hfd.models.minicpmo.reader import Reader, Talker, take_over
from hfd.models.minicpmo.settings import Settings


def accelerate(
    duplex: Any, settings: Settings, device: torch.device, voice_path: str
) -> dict[str, Any]:
    """Put captured steps into upstream's loop, if the settings and the device ask for it.

    With ``acceleration: auto`` a GPU on which capture fails gets the plain loop; that is said once
    on stderr and recorded. ``graphs`` lets the failure through.

    Returns:
        What was done, for provenance.
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
    return {"acceleration": "eager"}


@torch.no_grad()
def _use_graphs(
    duplex: Any, settings: Settings, device: torch.device, voice_path: str
) -> dict[str, Any]:
    """Make and capture everything, and only then replace anything."""
    model = duplex.model
    lane = Lane.make(device) if device.type == "cuda" else None
    reader = Reader(model.llm, int(model.config.max_position_embeddings), lane)
    talker = Talker(model.tts.model, int(model.tts.config.max_position_embeddings), lane)
    solver = None
    if lane is not None:
        reader.warm_up()
        talker.warm_up()
        solver = _make_solver(duplex, settings, lane, voice_path)
        torch.cuda.synchronize(device)
    take_over(duplex.decoder, reader)
    model.tts.model.forward = talker.forward
    if solver is not None:
        model.tts.audio_tokenizer.flow.decoder.forward_chunk = solver.forward_chunk
    return {
        "acceleration": "graphs",
        "captured": lane is not None,
        "captured_vocoder": solver is not None,
        "drawing": "vectorised" if _draw_faster(duplex, settings, device) else "upstream's",
    }


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


def _draw_faster(duplex: Any, settings: Settings, device: torch.device) -> bool:
    """Replace upstream's drawing of text tokens, if ours is shown to be the same."""
    decoder, weight = duplex.decoder, duplex.model.llm.lm_head.weight
    arguments: dict[str, Any] = {
        "mode": settings.decode,
        "temperature": settings.temperature,
        "top_k": settings.top_k,
        "top_p": settings.top_p,
        "text_repetition_penalty": settings.repetition_penalty,
        "text_repetition_window_size": settings.repetition_window,
    }
    if settings.length_penalty is not None:
        arguments["length_penalty"] = settings.length_penalty
    faster = make_decode(decoder, device)
    if not agrees(decoder, faster, arguments, weight.shape[0], weight):
        return False
    decoder.decode = faster
    return True
