"""transformers' decoder layers over a static cache, in few kernels.

The modules and weights are those of the loaded model (Qwen2.5 and Qwen3 have the same layers but
for biases and the norms of query and key); the order of operations is that of its `forward`. Norms
are one kernel, query and key are rotated together, and what depends on positions alone is computed
once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.nn import functional as F

from hfd.models.graphs.attention import static_attention
from hfd.models.graphs.fused import Fused


class StaticCache:
    """Keys and values in one block of memory per layer, and the layers' joint products.

    Slots that hold values of an earlier use, or padding's, are masked and never read with weight.

    Attributes:
        keys, values: of each layer, [batch, shared heads, capacity, width].
    """

    def __init__(self, model: Any, capacity: int, batch: int = 1) -> None:
        """Make room for `capacity` positions of `batch` sequences; `model` has ``layers``."""
        parts = [layer.self_attn for layer in model.layers]
        weight, self.width = parts[0].k_proj.weight, parts[0].head_dim
        self.heads = parts[0].q_proj.out_features // self.width
        self.shared = parts[0].k_proj.out_features // self.width
        shape = (batch, self.shared, capacity, self.width)
        self.keys = [weight.new_zeros(shape) for _ in parts]
        self.values = [weight.new_zeros(shape) for _ in parts]
        self.rows = torch.arange(batch, device=weight.device)[:, None]
        self.projections = [Fused(part.q_proj, part.k_proj, part.v_proj) for part in parts]
        self.gates = [Fused(layer.mlp.gate_proj, layer.mlp.up_proj) for layer in model.layers]
        self.norms = [self._joint_norm(part) for part in parts]

    def _joint_norm(self, attention: Any) -> torch.Tensor | None:
        """Weights of the norms of query and key [heads + shared heads, width], where it has any."""
        if not hasattr(attention, "q_norm"):
            return None
        query, key = attention.q_norm.weight.detach(), attention.k_norm.weight.detach()
        return torch.cat([query.expand(self.heads, -1), key.expand(self.shared, -1)])

    def write(
        self, layer: int, slots: torch.Tensor, key: torch.Tensor, value: torch.Tensor
    ) -> None:
        """Put keys and values [batch, tokens, shared heads, width] at `slots` [batch, tokens]."""
        self.keys[layer].transpose(1, 2)[self.rows, slots] = key
        self.values[layer].transpose(1, 2)[self.rows, slots] = value


def decode(
    model: Any,
    states: torch.Tensor,
    rotation: tuple[torch.Tensor, torch.Tensor],
    slots: torch.Tensor,
    bias: torch.Tensor,
    cache: StaticCache,
    keep: Iterable[int] = (),
    parts: int = 1,
) -> tuple[torch.Tensor, dict[int, torch.Tensor]]:
    """Run the layers.

    Args:
        model: a transformers decoder with ``layers`` and ``norm``.
        states: input embeddings, [batch, tokens, hidden].
        rotation: cosines and signed sines (see `rotate`), [batch or 1, tokens, 1, width].
        slots: where keys and values go, int64 [batch, tokens].
        bias: mask over as many slots as are read, from `hfd.models.graphs.attention.causal_bias`.
        cache: of this model, with as many rows as the batch.
        keep: which hidden states to give back (0 = embeddings, layers = after the norm).
        parts: see `hfd.models.graphs.attention.static_attention`.

    Returns:
        States after the last norm, [batch, tokens, hidden], and the kept ones.
    """
    bucket = bias.shape[-1]
    kept = {}
    for number, layer in enumerate(model.layers):
        if number in keep:
            kept[number] = states
        attention = layer.self_attn
        normed = rms_norm(layer.input_layernorm, states)
        joined = cache.projections[number](normed).unflatten(-1, (-1, cache.width))
        both, value = joined[..., : -cache.shared, :], joined[..., -cache.shared :, :]
        if (weight := cache.norms[number]) is not None:
            both = F.rms_norm(both, both.shape[-1:], eps=attention.q_norm.variance_epsilon) * weight
        both = rotate(both, *rotation)
        cache.write(number, slots, both[..., cache.heads :, :], value)
        query = both[..., : cache.heads, :].transpose(1, 2)
        read = cache.keys[number][:, :, :bucket], cache.values[number][:, :, :bucket]
        out = static_attention(query, *read, bias, attention.scaling, parts)
        states = states + attention.o_proj(out)
        normed = rms_norm(layer.post_attention_layernorm, states)
        gate, up = cache.gates[number](normed).chunk(2, dim=-1)
        states = states + layer.mlp.down_proj(layer.mlp.act_fn(gate) * up)
    states = rms_norm(model.norm, states)
    if len(model.layers) in keep:
        kept[len(model.layers)] = states
    return states, kept


def rms_norm(norm: Any, states: torch.Tensor) -> torch.Tensor:
    """Transformers' RMS norm in one kernel."""
    return F.rms_norm(states, norm.weight.shape, norm.weight, norm.variance_epsilon)


def signed(sin: torch.Tensor) -> torch.Tensor:
    """Sines whose first half is negated, as `rotate` wants them."""
    half = sin.shape[-1] // 2
    return torch.cat([-sin[..., :half], sin[..., half:]], dim=-1)


def rotate(states: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary embedding: transformers' ``x * cos + rotate_half(x) * sin``, `sin` from `signed`."""
    return torch.addcmul(states * cos, states.roll(states.shape[-1] // 2, dims=-1), sin)
