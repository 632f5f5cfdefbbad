"""One token through decoder layers in six kernels a layer, for GPUs (needs triton).

A single token moves every weight once and does almost no arithmetic, so its time is the weights'
bandwidth and the number of kernels. As attention reads as many slots as are filled, one captured
step serves every length.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import triton

from hfd.models.graphs import kernels
from hfd.models.graphs.capture import CaptureError
from hfd.models.graphs.decoder import StaticCache, qk_epsilon, rms_norm

SPLITS = 32
"""Parts of the filled slots that are attended side by side, for each shared head."""
ATTENDED = 64
"""Slots that a program reads at once."""
ROWS = 16
"""Least rows of a matrix product on a tensor core; query heads of one shared head are fewer."""
APART = 0.1
"""Most that one token's state may differ, relative to its length: bfloat16 over all layers."""


def decode_token(
    model: Any,
    state: torch.Tensor,
    rotation: tuple[torch.Tensor, torch.Tensor],
    start: torch.Tensor,
    cache: StaticCache,
    keep: Iterable[int] = (),
) -> tuple[torch.Tensor, dict[int, torch.Tensor]]:
    """`hfd.models.graphs.decoder.decode` for one token of one sequence.

    Args:
        model: a transformers decoder with ``layers`` and ``norm``.
        state: its input embedding, [1, hidden].
        rotation: cosines and signed sines, [width] in all.
        start: the token's slot, int64 [1]; all slots before it are filled.
        cache: of this model, for one sequence.
        keep: which hidden states to give back.

    Returns:
        The state after the last norm, [1, hidden], and the kept ones.
    """
    kept = {}
    cos, sin = (part.contiguous() for part in rotation)
    for number, layer in enumerate(model.layers):
        if number in keep:
            kept[number] = state
        attention, mlp = layer.self_attn, layer.mlp
        joined = _project(state, layer.input_layernorm, cache.projections[number])
        out = _attention(joined, cos, sin, start, cache, number, attention)
        state = _added(out, attention.o_proj.weight, state)
        active = _gated(state, layer.post_attention_layernorm, cache.gates[number].weight)
        state = _added(active, mlp.down_proj.weight, state)
    state = rms_norm(model.norm, state)
    if len(model.layers) in keep:
        kept[len(model.layers)] = state
    return state, kept


def check_token(plain: torch.Tensor, fused: torch.Tensor) -> None:
    """Compare one token's state from the kernels with that from the plain layers, any shape.

    Raises:
        CaptureError: they differ by more than rounding.
    """
    apart = (plain.float() - fused.float()).norm() / plain.float().norm()
    if not apart < APART:
        raise CaptureError(f"the fused kernels are {apart:.3f} from the plain layers")


def shape_of(kind: str, rows: int, size: int) -> tuple[int, int, int, int]:
    """How a product is cut up: rows and columns that a program reads at once, warps, stages.

    The fastest of eleven ways on an H200 for Qwen2.5's shapes, or close to it. Fixed, and the same
    on every GPU, as it decides in which order sums are made.
    """
    if kind == "gated":
        cut = (4, 1024, 4, 3)
    elif kind == "added" and rows < 2048:
        cut = (2, 2048, 4, 3)
    else:
        cut = (8, 512, 4, 3)
    block_rows, block, warps, stages = cut
    return block_rows, min(block, triton.next_power_of_2(size)), warps, stages


def _project(state: torch.Tensor, norm: Any, fused: Any) -> torch.Tensor:
    rows, size = fused.weight.shape
    block_rows, block, warps, stages = shape_of("project", rows, size)
    out = state.new_empty(1, rows)
    bias = fused.bias if fused.bias is not None else fused.weight
    kernels.norm_linear[(triton.cdiv(rows, block_rows),)](
        state,
        norm.weight,
        norm.variance_epsilon,
        fused.weight,
        bias,
        out,
        rows,
        size,
        triton.next_power_of_2(size),
        fused.bias is not None,
        block_rows,
        block,
        stages,
        num_warps=warps,
    )
    return out


def _gated(state: torch.Tensor, norm: Any, weight: torch.Tensor) -> torch.Tensor:
    both, size = weight.shape
    block_rows, block, warps, stages = shape_of("gated", both // 2, size)
    out = state.new_empty(1, both // 2)
    kernels.norm_gated[(triton.cdiv(both // 2, block_rows),)](
        state,
        norm.weight,
        norm.variance_epsilon,
        weight,
        out,
        both // 2,
        size,
        triton.next_power_of_2(size),
        block_rows,
        block,
        stages,
        num_warps=warps,
    )
    return out


def _added(x: torch.Tensor, weight: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
    rows, size = weight.shape
    block_rows, block, warps, stages = shape_of("added", rows, size)
    out = torch.empty_like(residual)
    kernels.linear_added[(triton.cdiv(rows, block_rows),)](
        x, weight, residual, out, rows, size, block_rows, block, stages, num_warps=warps
    )
    return out


def _attention(
    joined: torch.Tensor,
    cos: torch.Tensor,
    sin: torch.Tensor,
    start: torch.Tensor,
    cache: StaticCache,
    number: int,
    attention: Any,
) -> torch.Tensor:
    heads, shared, width, norm = cache.heads, cache.shared, cache.width, cache.norms[number]
    parts = torch.empty(heads, SPLITS, width, dtype=torch.float32, device=joined.device)
    tops = torch.empty(2, heads, SPLITS, dtype=torch.float32, device=joined.device)
    keys, values = cache.keys[number], cache.values[number]
    group = heads // shared
    kernels.attend[(shared, SPLITS)](
        joined,
        joined if norm is None else norm,
        qk_epsilon(attention),
        cos,
        sin,
        start,
        keys,
        values,
        parts,
        tops[0],
        tops[1],
        keys.shape[2],
        attention.scaling,
        group,
        heads,
        shared,
        width,
        max(ROWS, triton.next_power_of_2(group)),
        SPLITS,
        ATTENDED,
        norm is not None,
        num_warps=4,
    )
    out = joined.new_empty(1, heads * width)
    kernels.join_parts[(heads,)](parts, tops[0], tops[1], out, width, SPLITS, num_warps=4)
    return out
