"""Upstream's decoder layers over a static cache, in few kernels.

The modules and weights are upstream's; the order of operations is its `forward`. Norms are one
kernel, query and key are rotated together, and what depends on positions alone is computed once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.nn import functional as F

from hfd.models.roma.attention import static_attention
from hfd.models.roma.fused import Fused


class StaticCache:
    """Keys and values of one file in one block of memory per layer, and the layers' joint products.

    Slots that hold another file's values, or padding's, are masked and never read with weight.
    """

    def __init__(self, model: Any, capacity: int) -> None:
        attention = model.layers[0].self_attn
        like = model.norm.weight
        shape = (1, model.config.num_key_value_heads, capacity, attention.head_dim)
        self.keys = [like.new_zeros(shape) for _ in model.layers]
        self.values = [like.new_zeros(shape) for _ in model.layers]
        parts = [layer.self_attn for layer in model.layers]
        self.projections = [Fused(part.q_proj, part.k_proj, part.v_proj) for part in parts]
        self.gates = [Fused(layer.mlp.gate_proj, layer.mlp.up_proj) for layer in model.layers]


def decode(
    model: Any,
    embeds: torch.Tensor,
    positions: torch.Tensor,
    slots: torch.Tensor,
    bias: torch.Tensor,
    cache: StaticCache,
    keep: Iterable[int] = (),
) -> tuple[torch.Tensor, dict[int, torch.Tensor]]:
    """Run the layers.

    Args:
        model: upstream's text model.
        embeds: [tokens, hidden].
        positions: [3, tokens].
        slots: where keys and values go, [tokens].
        bias: mask over as many slots as are read, from `hfd.models.roma.attention.causal_bias`.
        keep: which hidden states to give back (0 = embeddings, layers = after the norm).

    Returns:
        States after the last norm, [tokens, hidden], and the kept ones.
    """
    cos, sin = multimodal_rotation(model, positions, embeds.dtype)
    bucket = bias.shape[-1]
    states, kept = embeds, {}
    for number, layer in enumerate(model.layers):
        if number in keep:
            kept[number] = states
        attention = layer.self_attn
        heads, shared = attention.num_heads, attention.num_key_value_heads
        normed = rms_norm(layer.input_layernorm, states)
        joined = cache.projections[number](normed).unflatten(-1, (heads + 2 * shared, -1))
        both = rotate(joined[:, :-shared], cos, sin).transpose(0, 1)[None]
        value = joined[:, -shared:].transpose(0, 1)[None]
        keys, values = cache.keys[number], cache.values[number]
        keys.index_copy_(2, slots, both[:, heads:])
        values.index_copy_(2, slots, value)
        read = keys[:, :, :bucket], values[:, :, :bucket]
        out = static_attention(both[:, :heads], *read, bias, attention.scaling)
        states = states + attention.o_proj(out)
        normed = rms_norm(layer.post_attention_layernorm, states)
        gate, up = cache.gates[number](normed).chunk(2, dim=-1)
        states = states + layer.mlp.down_proj(layer.mlp.act_fn(gate) * up)
    states = rms_norm(model.norm, states)
    if len(model.layers) in keep:
        kept[len(model.layers)] = states
    return states, kept


def multimodal_rotation(
    model: Any, positions: torch.Tensor, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and signed sines [tokens, 1, width]: each section of the width turns by one axis."""
    rotary, sections = model.rotary_emb, model.config.rope_parameters["mrope_section"]
    angles = (positions[:, :, None].float() * rotary.inv_freq.float()).split(sections, dim=-1)
    half = torch.cat([part[axis % 3] for axis, part in enumerate(angles)], dim=-1)
    both = torch.cat([half, half], dim=-1)[:, None]
    scale = rotary.attention_scaling
    return (both.cos() * scale).to(dtype), signed((both.sin() * scale).to(dtype))


def layer_numbers(layers: Sequence[int], count: int) -> list[int]:
    """Indices into the `count` + 1 hidden states of a model with `count` layers, from 0."""
    return [layer % (count + 1) for layer in layers]


def rms_norm(norm: Any, states: torch.Tensor) -> torch.Tensor:
    """Upstream's RMS norm in one kernel."""
    return F.rms_norm(states, norm.weight.shape, norm.weight, norm.variance_epsilon)


def signed(sin: torch.Tensor) -> torch.Tensor:
    """Sines whose first half is negated, as `rotate` wants them."""
    half = sin.shape[-1] // 2
    return torch.cat([-sin[..., :half], sin[..., half:]], dim=-1)


def rotate(states: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Rotary embedding: upstream's ``x * cos + rotate_half(x) * sin``, `sin` from `signed`."""
    return torch.addcmul(states * cos, states.roll(states.shape[-1] // 2, dims=-1), sin)
