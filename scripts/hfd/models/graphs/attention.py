"""Attention over a static cache, for shapes that never change.

Key and value heads are shared by groups of query heads. transformers copies them once per query
head where there is a mask; here the group's queries become rows of one head instead, so the cache
is read once. The few rows of few tokens cannot fill a GPU, so a long cache can be split into parts
that are attended in parallel.
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

MASKED = -30_000.0
"""Added to the score of a masked slot: finite, so that a part without a single slot gives a number,
and far enough below every score that its weight is exactly 0."""


def static_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bias: torch.Tensor,
    scaling: float,
    parts: int = 1,
) -> torch.Tensor:
    """Attention of a few tokens over many slots.

    Args:
        query: [batch, heads, tokens, width].
        key, value: [batch, shared heads, slots, width].
        bias: additive mask from `causal_bias`, [batch, 1, group * tokens, slots].
        scaling: factor of the scores.
        parts: into how many parts a GPU splits the slots; more than 1 for a batch of 1 only.

    Returns:
        [batch, tokens, heads * width].
    """
    batch, heads, tokens, width = query.shape
    shared = key.shape[1]
    rows = query.reshape(batch, shared, heads // shared * tokens, width)
    if parts > 1 and query.is_cuda:
        out = _in_parts(rows, key, value, bias, scaling, parts)
    else:
        out = F.scaled_dot_product_attention(rows, key, value, bias, scale=scaling)
    out = out.reshape(batch, heads, tokens, width).transpose(1, 2)
    return out.reshape(batch, tokens, heads * width)


def count_parts(tokens: int, slots: int) -> int:
    """Into how many parts to split a long cache: many for a single token's few rows."""
    return min(32, slots // 256) if tokens == 1 else min(4, slots // 1024)


def _in_parts(
    rows: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    bias: torch.Tensor,
    scaling: float,
    parts: int,
) -> torch.Tensor:
    """Attention with the slots split into parts, joined by their log-sum-exp."""
    keys, values = (part[0].unflatten(1, (parts, -1)).transpose(0, 1) for part in (key, value))
    queries = rows.expand(parts, -1, -1, -1)
    biases = bias[0, 0].unflatten(1, (parts, -1)).transpose(0, 1)[:, None]
    out, log_sum, *_ = torch.ops.aten._scaled_dot_product_efficient_attention(
        queries, keys, values, biases.expand(-1, rows.shape[1], -1, -1), True, scale=scaling
    )
    share = torch.softmax(log_sum[..., : rows.shape[2]], dim=0)
    return (out * share[..., None]).sum(0, keepdim=True).to(rows.dtype)


def causal_bias(
    start: torch.Tensor, tokens: int, slots: int, group: int, dtype: torch.dtype
) -> torch.Tensor:
    """Mask of tokens at slots [start, start + tokens): each sees itself and all before.

    Args:
        start: first slot of each row of the batch, int64 [batch].
        tokens, slots, group: tokens of a row, slots that are read, query heads per shared head.

    Returns:
        [batch, 1, group * tokens, slots].
    """
    last = start[:, None] + torch.arange(tokens, device=start.device)
    beyond = torch.arange(slots, device=start.device) > last[..., None]
    bias = torch.zeros(beyond.shape, dtype=dtype, device=start.device).masked_fill(beyond, MASKED)
    return bias.repeat(1, group, 1)[:, None]
