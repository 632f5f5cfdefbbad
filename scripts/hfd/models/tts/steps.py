"""The two things that make a frame fast: fixed buffers and captured graphs.

A frame is about 20 small transformer passes of one position each; launched one kernel at a time
they cost many times what they compute. With all inputs and the key-value cache in fixed buffers,
the same passes can be recorded once as a CUDA graph and replayed.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import nn

_WARM_UPS = 3


class Step:
    """A function of fixed buffers: called plainly, or recorded once and replayed."""

    def __init__(self, function: Callable[[], None], captured: bool) -> None:
        """Record `function` if `captured`; it must read and write fixed CUDA buffers only."""
        self._call = function
        if not captured:
            return
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(_WARM_UPS):  # lets libraries allocate and choose before recording
                function()
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph):
            function()
        self._call = self._graph.replay

    def __call__(self) -> None:
        self._call()


class FixedCache:
    """Keys and values of all layers, shape [1, heads, length, head_dim] each, written in place.

    Stands in for transformers' cache: attention modules call nothing but `update`.
    """

    def __init__(self, layers: nn.ModuleList, length: int) -> None:
        weight = layers[0].self_attn.k_proj.weight
        head_dim = layers[0].self_attn.head_dim
        shape = (1, weight.shape[0] // head_dim, length, head_dim)
        self.keys = [weight.new_zeros(shape) for _ in layers]
        self.values = [weight.new_zeros(shape) for _ in layers]

    def update(
        self, key: torch.Tensor, value: torch.Tensor, layer: int, place: dict[str, torch.Tensor]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write at ``place["cache_position"]``; return the whole of both."""
        self.keys[layer].index_copy_(2, place["cache_position"], key)
        self.values[layer].index_copy_(2, place["cache_position"], value)
        return self.keys[layer], self.values[layer]


class Decoder:
    """A stack of decoder layers over a fixed cache, at positions given by a tensor."""

    def __init__(self, model: nn.Module, length: int, rope_axes: int) -> None:
        """Take over the layers, norm and rotary embedding of a transformers decoder.

        Args:
            model: has ``layers``, ``norm`` and ``rotary_emb``.
            length: positions the cache holds.
            rope_axes: 3 where the rotary embedding wants [3, 1, length] position ids, else 1.
        """
        self._layers, self._norm = model.layers, model.norm
        self.cache = FixedCache(model.layers, length)
        probe = self.cache.keys[0]
        self._slots = torch.arange(length, device=probe.device)
        shape = (3, 1, length) if rope_axes == 3 else (1, length)
        cos, sin = model.rotary_emb(probe, self._slots.expand(shape))
        self._cos, self._sin = cos.to(probe.dtype), sin.to(probe.dtype)  # [..., length, head_dim]

    def __call__(self, hidden: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Normed hidden states, shape of `hidden` [1, n, size], for positions [n]."""
        visible = self._slots[None, :] <= positions[:, None]
        mask = torch.zeros_like(visible, dtype=hidden.dtype)
        mask = mask.masked_fill(~visible, torch.finfo(hidden.dtype).min)[None, None]
        rope = (
            self._cos.index_select(-2, positions),
            self._sin.index_select(-2, positions),
        )
        for layer in self._layers:
            hidden = layer(
                hidden,
                attention_mask=mask,
                position_embeddings=rope,
                past_key_values=self.cache,
                cache_position=positions,
            )[0]
        return self._norm(hidden)


def draw(logits: torch.Tensor, noise: torch.Tensor, temperature: float) -> torch.Tensor:
    """Sample from the most likely tokens with Gumbel noise made elsewhere; zero noise is greedy.

    Args:
        logits: shape [1, vocabulary].
        noise: float32, shape [top_k].

    Returns:
        int64, shape [1].
    """
    values, tokens = logits.float().topk(len(noise), dim=-1)
    best = (values / temperature + noise).argmax(dim=-1, keepdim=True)
    return tokens.gather(-1, best)[0]
