"""Upstream's way of drawing a text token, without its loop over every token that was said.

Upstream divides the logit of each of up to 512 recent tokens in a launch of its own, moves a list
of seven thousand forbidden ids to the GPU for every token, and waits for the GPU six times. The
results here are the same, token for token and draw for draw; `agrees` shows it on the snapshot's
own code after loading, and where it does not hold, upstream's stays.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch.nn import functional as F

from hfd.models.graphs.capture import Lane, Step

TRIALS = 24


class Drawing:
    """Takes the place of `decode` of upstream's decoder of text.

    A draw from probabilities is the largest of them divided by exponential noise, which is how
    torch's `multinomial` draws one; written out, the host need not wait until it has checked them.
    All that follows from noise and logits is one step for each set of arguments.
    """

    def __init__(self, decoder: Any, like: torch.Tensor, lane: Lane | None) -> None:
        """Make room.

        Args:
            decoder: upstream's.
            like: one row of logits' type and device, [vocabulary].
            lane: where to capture; None runs every step as it is.
        """
        self._decoder, self._lane = decoder, lane
        known = inspect.signature(decoder.decode).parameters
        self._usual_penalty = known["length_penalty"].default if "length_penalty" in known else 1.0
        forbidden = sorted(set(decoder.forbidden_token_ids))
        self._nothing = forbidden[0]
        """A token whose logit no penalty changes."""
        self._forbidden = torch.zeros_like(like, dtype=torch.bool)
        self._forbidden[torch.tensor(forbidden, device=like.device)] = True
        self._logits, self._noise = torch.zeros_like(like), torch.ones_like(like)
        self._recent: dict[int, torch.Tensor] = {}
        self._steps: dict[tuple[Any, ...], Step] = {}

    @torch.no_grad()
    def decode(
        self,
        logits: torch.Tensor,
        mode: str = "sampling",
        temperature: float = 0.7,
        top_k: int = 20,
        top_p: float = 0.8,
        listen_top_k: int | None = None,
        listen_prob_scale: float = 1.0,
        text_repetition_penalty: float = 1.05,
        text_repetition_window_size: int = 512,
        length_penalty: float | None = None,
    ) -> torch.Tensor:
        """See upstream: the next token, int64 [1], from logits [1, vocabulary]."""
        if listen_top_k is not None or listen_prob_scale != 1.0:
            raise ValueError("the runner never asks for listen_top_k or listen_prob_scale")
        penalty = self._usual_penalty if length_penalty is None else length_penalty
        first = self._first(logits[0], mode)
        if first.item() == self._decoder.chunk_eos_id:
            return first
        self._logits.copy_(logits[0])
        if mode != "greedy":
            self._noise.exponential_()
        recent = self._note_recent(text_repetition_window_size)
        key = (mode, temperature, top_k, top_p, text_repetition_penalty, recent.shape[0], penalty)
        if key not in self._steps:
            arguments = (mode, temperature, top_k, top_p, text_repetition_penalty, recent, penalty)
            self._steps[key] = Step(lambda: self._choose(*arguments), self._lane)
        token: torch.Tensor = self._steps[key]()
        self._remember(int(token.item()))
        return token

    def _first(self, logits: torch.Tensor, mode: str) -> torch.Tensor:
        """The draw that only decides whether the second's text ends here, int64 [1]."""
        if mode == "greedy":
            return logits.argmax(keepdim=True)
        return _draw(F.softmax(logits, dim=-1), self._noise.exponential_())

    def _note_recent(self, window: int) -> torch.Tensor:
        """The tokens that the repetition penalty is for, int64 [window], on the device."""
        vocabulary = self._logits.shape[0]
        recent = set(self._decoder.generated_tokens[-window:])
        known = sorted(number for number in recent if number < vocabulary)
        if window not in self._recent:
            self._recent[window] = torch.empty(window, dtype=torch.long, device=self._logits.device)
        places = known + [self._nothing] * (window - len(known))
        return self._recent[window].copy_(torch.tensor(places))

    def _choose(
        self,
        mode: str,
        temperature: float,
        top_k: int,
        top_p: float,
        repetition_penalty: float,
        recent: torch.Tensor,
        length_penalty: float,
    ) -> torch.Tensor:
        logits = self._logits.masked_fill(self._forbidden, -torch.inf)
        if repetition_penalty != 1.0:
            chosen = logits[recent]  # divided whatever their sign, as upstream does
            inverse = repetition_penalty < 1.0
            less = chosen * (1.0 / repetition_penalty) if inverse else chosen / repetition_penalty
            logits = logits.scatter(0, recent, less)
        if length_penalty != 1.0:
            place = self._decoder.turn_eos_id
            end = logits[place]
            logits[place] = torch.where(end > 0, end / length_penalty, end * length_penalty)
        if mode == "greedy":
            return logits.argmax(keepdim=True)
        likely = _keep_likely((logits / temperature)[None], top_k, top_p)
        return _draw(F.softmax(likely, dim=-1)[0], self._noise)

    def _remember(self, number: int) -> None:
        decoder = self._decoder
        special = number in decoder.special_token_ids
        (decoder.generated_special_tokens if special else decoder.generated_tokens).append(number)


def _draw(probabilities: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
    """One token, int64 [1], as `torch.multinomial` draws it with that noise, both [vocabulary]."""
    return (probabilities / noise).argmax(keepdim=True)


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
        decode: of `Drawing`.
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
            drawn.append(way(logits=logits.to(like), **arguments).item())
            drawn.append(torch.rand(1, device=like.device).item())  # as many draws were taken
        outcomes.append((drawn, list(decoder.generated_tokens)))
    decoder.reset()
    return outcomes[0] == outcomes[1]
