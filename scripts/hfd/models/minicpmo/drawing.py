"""Upstream's way of drawing a text token, without its loop over every token that was said.

Upstream divides the logit of each of up to 512 recent tokens in a launch of its own, and moves a
list of seven thousand forbidden ids to the GPU for every token. The results here are the same,
token for token and draw for draw; `agrees` shows it on the snapshot's own code after loading, and
where it does not hold, upstream's stays.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

TRIALS = 24


def make_decode(decoder: Any, device: torch.device) -> Callable[..., torch.Tensor]:
    """A `decode` for upstream's decoder of text."""
    forbidden = torch.tensor(sorted(set(decoder.forbidden_token_ids)), device=device)
    known = inspect.signature(decoder.decode).parameters
    usual_penalty = known["length_penalty"].default if "length_penalty" in known else 1.0

    @torch.no_grad()
    def decode(
        logits: torch.Tensor,
        mode: str = "sampling",
        temperature: float = 0.7,
        top_k: int = 20,
        top_p: float = 0.8,
        listen_top_k: int | None = None,
        listen_prob_scale: float = 1.0,
        text_repetition_penalty: float = 1.05,
        text_repetition_window_size: int = 512,
        length_penalty: float = usual_penalty,
    ) -> torch.Tensor:
        if listen_top_k is not None or listen_prob_scale != 1.0:
            raise ValueError("the runner never asks for listen_top_k or listen_prob_scale")
        if mode == "greedy":
            first = torch.argmax(logits[0])
        else:
            first = torch.multinomial(F.softmax(logits[0], dim=-1), num_samples=1)
        if first.item() == decoder.chunk_eos_id:
            return first.reshape(1)
        logits = logits.clone()
        logits[:, forbidden] = -torch.inf
        recent = decoder.generated_tokens[-text_repetition_window_size:]
        _punish(logits, recent, text_repetition_penalty)
        if length_penalty != 1.0:
            end = logits[0, decoder.turn_eos_id]
            logits[0, decoder.turn_eos_id] = torch.where(
                end > 0, end / length_penalty, end * length_penalty
            )
        if mode == "greedy":
            token = torch.argmax(logits, dim=-1)
        else:
            kept = _keep_likely(logits / temperature, top_k, top_p)
            token = torch.multinomial(F.softmax(kept, dim=-1), num_samples=1).squeeze(1)
        number = int(token.item())
        special = number in decoder.special_token_ids
        (decoder.generated_special_tokens if special else decoder.generated_tokens).append(number)
        return token

    return decode


def _punish(logits: torch.Tensor, recent: list[int], penalty: float) -> None:
    """Divide the logits of recent tokens, whatever their sign, as upstream does."""
    known = sorted({number for number in recent if number < logits.shape[-1]})
    if penalty == 1.0 or not known:
        return
    places = torch.tensor(known, device=logits.device)
    chosen = logits[0, places]
    logits[0, places] = chosen / penalty if penalty > 1.0 else chosen * (1.0 / penalty)


def _keep_likely(logits: torch.Tensor, top_k: int, top_p: float) -> torch.Tensor:
    """Top-k, then top-p with the first token beyond the share kept."""
    if top_k > 0:
        least = torch.topk(logits, min(top_k, logits.size(-1)))[0][..., -1, None]
        logits = logits.masked_fill(logits < least, -torch.inf)
    if top_p > 0.0:
        ordered, places = torch.sort(logits, descending=True)
        beyond = torch.cumsum(F.softmax(ordered, dim=-1), dim=-1) > top_p
        beyond[..., 1:] = beyond[..., :-1].clone()
        beyond[..., 0] = False
        logits = logits.masked_fill(
            torch.zeros_like(beyond).scatter(-1, places, beyond), -torch.inf
        )
    return logits


def agrees(
    decoder: Any,
    decode: Callable[..., torch.Tensor],
    arguments: dict[str, Any],
    vocabulary: int,
    like: torch.Tensor,
) -> bool:
    """Whether `decode` draws what the decoder's own does, with the same seed, many times over.

    Args:
        decoder: upstream's, with its own `decode`.
        decode: from `make_decode`.
        arguments: what the runner passes.
        vocabulary: size of the logits.
        like: a tensor of the logits' type and device.
    """
    known = inspect.signature(decoder.decode).parameters
    if not arguments.keys() <= known.keys():
        return False
    generator = torch.Generator()
    outcomes = []
    for way in (decoder.decode, decode):
        generator.manual_seed(0)
        drawn = []
        decoder.generated_tokens = []
        for trial in range(TRIALS):
            logits = torch.randn(1, vocabulary, generator=generator) * (1 + trial % 6)
            if trial % 4 == 0:
                logits[0, decoder.chunk_eos_id] = 12.0
            if trial % 4 == 1:
                logits[0, decoder.turn_eos_id] = 12.0
            torch.manual_seed(trial)
            drawn.append(int(way(logits=logits.to(like), **arguments).item()))
        outcomes.append((drawn, list(decoder.generated_tokens)))
    decoder.reset()
    return outcomes[0] == outcomes[1]
