"""transformers' decoder layers over a static cache, in few kernels.

The modules and weights are those of the loaded model (Qwen2.5 and Qwen3 have the same layers but
for biases and the norms of query and key); the order of operations is that of its `forward`. Norms
are one kernel, query and key are rotated together, and what depends on positions alone is computed
once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

import torch
from torch.nn import functional as F

from hfd.models.graphs.attention import static_attention
from hfd.models.graphs.fused import Fused

P = ParamSpec("P")
R = TypeVar("R")


class StaticCache:
    """Keys and values in one block of memory per layer, and the layers' joint products.

    Slots that hold values of an earlier use, or padding's, are masked and never read with weight.

    Attributes:
        block: of all layers, [layers, batch, 2 * shared heads, capacity, width].
        keys, values: views of it, [batch, shared heads, capacity, width] for each layer.
    """

    def __init__(self, model: Any, capacity: int, batch: int = 1, compiled: bool = False) -> None:
        """Make room for `capacity` positions of `batch` sequences.

        Args:
            model: a transformers decoder with ``layers``.
            capacity: positions of a sequence.
            batch: sequences.
            compiled: whether `torch.compile` makes one kernel each of what lies between the
                products; it rounds where the plain operations round.

        Raises:
            ValueError: an activation other than SiLU.
        """
        parts = [layer.self_attn for layer in model.layers]
        if model.config.hidden_act != "silu":
            raise ValueError(f"activation {model.config.hidden_act!r} is not supported")
        weight, self.width = parts[0].k_proj.weight, parts[0].head_dim
        self.heads = parts[0].q_proj.out_features // self.width
        self.shared = parts[0].k_proj.out_features // self.width
        shape = (len(parts), batch, 2 * self.shared, capacity, self.width)
        self.block = weight.new_zeros(shape)
        self.keys = [layer[:, : self.shared] for layer in self.block]
        self.values = [layer[:, self.shared :] for layer in self.block]
        self.rows = torch.arange(batch, device=weight.device)[:, None]
        self.projections = [Fused(part.q_proj, part.k_proj, part.v_proj) for part in parts]
        self.gates = [Fused(layer.mlp.gate_proj, layer.mlp.up_proj) for layer in model.layers]
        self.norms = [self._joint_norm(part) for part in parts]
        self.join = fuse(_join) if compiled else _join
        self.place = fuse(_place) if compiled else _place
        self.gate = fuse(_gate) if compiled else _gate

    def _joint_norm(self, attention: Any) -> torch.Tensor | None:
        """Weights of the norms of query and key [heads + shared heads, width], where it has any."""
        if not hasattr(attention, "q_norm"):
            return None
        query, key = attention.q_norm.weight.detach(), attention.k_norm.weight.detach()
        return torch.cat([query.expand(self.heads, -1), key.expand(self.shared, -1)])

    def write(self, layer: int, slots: torch.Tensor, pair: torch.Tensor) -> None:
        """Put keys and values [batch, tokens, 2 * shared heads, width] at `slots`."""
        self.block[layer].transpose(1, 2)[self.rows, slots] = pair


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
    kept: dict[int, torch.Tensor] = {}
    added: torch.Tensor | None = None  # what the layer before adds to the states
    for number, layer in enumerate(model.layers):
        attention = layer.self_attn
        states, normed = cache.join(states, added, *_norm_of(layer.input_layernorm))
        if number in keep:
            kept[number] = states
        joined = cache.projections[number](normed).unflatten(-1, (-1, cache.width))
        query, pair = cache.place(
            joined, cache.norms[number], *rotation, cache.shared, qk_epsilon(attention)
        )
        cache.write(number, slots, pair)
        read = cache.keys[number][:, :, :bucket], cache.values[number][:, :, :bucket]
        out = static_attention(query.transpose(1, 2), *read, bias, attention.scaling, parts)
        states, normed = cache.join(
            states, attention.o_proj(out), *_norm_of(layer.post_attention_layernorm)
        )
        added = layer.mlp.down_proj(cache.gate(cache.gates[number](normed)))
    states, normed = cache.join(states, added, *_norm_of(model.norm))
    if len(model.layers) in keep:
        kept[len(model.layers)] = normed
    return normed, kept


def fuse(function: Callable[P, R], dynamic: bool = False) -> Callable[P, R]:
    """`function` with its operations in as few kernels as `torch.compile` makes of them.

    Compiled at the first call with each shape, or once for all shapes if `dynamic`; kernels are
    kept on disk for the next process.
    """
    torch._dynamo.config.recompile_limit = max(64, torch._dynamo.config.recompile_limit)
    options = {"emulate_precision_casts": True}
    compiled: Callable[P, R] = torch.compile(
        function, dynamic=dynamic, fullgraph=True, options=options
    )
    return compiled


def _norm_of(norm: Any) -> tuple[torch.Tensor, float]:
    return norm.weight, norm.variance_epsilon


def qk_epsilon(attention: Any) -> float:
    """Of the norms of query and key, where there are any."""
    return attention.q_norm.variance_epsilon if hasattr(attention, "q_norm") else 0.0


def _join(
    states: torch.Tensor, added: torch.Tensor | None, weight: torch.Tensor, epsilon: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """The states with what a layer adds, and their norm."""
    if added is not None:
        states = states + added
    return states, F.rms_norm(states, weight.shape, weight, epsilon)


def _place(
    joined: torch.Tensor,
    norm: torch.Tensor | None,
    cos: torch.Tensor,
    sin: torch.Tensor,
    shared: int,
    epsilon: float,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Rotated queries [batch, tokens, heads, width], and keys and values [..., 2 * shared, width].

    Args:
        joined: query, key and value heads, [batch, tokens, heads + 2 * shared, width].
        norm: weights of the norms of query and key, [heads + shared, width].
    """
    turned, value = joined[..., :-shared, :], joined[..., -shared:, :]
    if norm is not None:
        turned = F.rms_norm(turned, turned.shape[-1:], eps=epsilon) * norm
    turned = rotate(turned, cos, sin)
    return turned[..., :-shared, :], torch.cat([turned[..., -shared:, :], value], dim=-2)


def _gate(joined: torch.Tensor) -> torch.Tensor:
    gate, up = joined.chunk(2, dim=-1)
    return F.silu(gate) * up


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
