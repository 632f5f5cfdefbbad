"""One token through decoder layers in six kernels a layer, for GPUs (needs triton).

A single token moves every weight once and does almost no arithmetic, so its time is the weights'
bandwidth and the number of kernels. Here norms are computed inside the products that read them,
biases, activations and residual sums inside those that write them, and attention reads as many
slots as are filled, so one captured step serves every length. Sums are in float32; results are
rounded where the plain layers round them.
"""

# Kernels are compiled by triton, whose arguments have no types that Python knows.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
import triton
import triton.language as tl

from hfd.models.graphs.decoder import StaticCache, rms_norm

SPLITS = 32
"""Parts of the filled slots that are attended side by side, for each shared head."""
ATTENDED = 64
"""Slots that a program reads at once."""
ROWS = 16
"""Least rows of a matrix product on a tensor core; query heads of one shared head are fewer."""


@triton.jit
def _scale_of(x, eps, size: tl.constexpr, padded: tl.constexpr):
    """1 / root mean square of a vector."""
    place = tl.arange(0, padded)
    value = tl.load(x + place, mask=place < size, other=0.0).to(tl.float32)
    return tl.rsqrt(tl.sum(value * value, 0) / size + eps)


@triton.jit
def _norm_linear(
    x,
    norm,
    eps,
    weight,
    bias,
    out,
    rows_out,
    size: tl.constexpr,
    padded: tl.constexpr,
    has_bias: tl.constexpr,
    block_rows: tl.constexpr,
    block: tl.constexpr,
    stages: tl.constexpr,
):
    """Rows of ``weight @ rms_norm(x) + bias``."""
    scale = _scale_of(x, eps, size, padded)
    row = tl.program_id(0) * block_rows + tl.arange(0, block_rows)
    total = tl.zeros((block_rows, block), tl.float32)
    for begin in tl.range(0, size, block, num_stages=stages):
        place = begin + tl.arange(0, block)
        inside = place < size
        value = tl.load(x + place, mask=inside, other=0.0).to(tl.float32) * scale
        value = value * tl.load(norm + place, mask=inside, other=0.0).to(tl.float32)
        value = value.to(weight.dtype.element_ty).to(tl.float32)
        at = weight + row[:, None] * size + place[None, :]
        part = tl.load(at, mask=(row < rows_out)[:, None] & inside[None, :], other=0.0)
        total += part.to(tl.float32) * value[None, :]
    result = tl.sum(total, 1)
    if has_bias:
        result += tl.load(bias + row, mask=row < rows_out, other=0.0).to(tl.float32)
    tl.store(out + row, result.to(out.dtype.element_ty), mask=row < rows_out)


@triton.jit
def _norm_gated(
    x,
    norm,
    eps,
    weight,
    out,
    rows_out,
    size: tl.constexpr,
    padded: tl.constexpr,
    block_rows: tl.constexpr,
    block: tl.constexpr,
    stages: tl.constexpr,
):
    """Rows of ``silu(gate @ h) * (up @ h)`` with ``h = rms_norm(x)``; `weight` is gate, then up."""
    scale = _scale_of(x, eps, size, padded)
    row = tl.program_id(0) * block_rows + tl.arange(0, block_rows)
    gates = tl.zeros((block_rows, block), tl.float32)
    ups = tl.zeros((block_rows, block), tl.float32)
    for begin in tl.range(0, size, block, num_stages=stages):
        place = begin + tl.arange(0, block)
        inside = place < size
        value = tl.load(x + place, mask=inside, other=0.0).to(tl.float32) * scale
        value = value * tl.load(norm + place, mask=inside, other=0.0).to(tl.float32)
        value = value.to(weight.dtype.element_ty).to(tl.float32)
        there = (row < rows_out)[:, None] & inside[None, :]
        at = weight + row[:, None] * size + place[None, :]
        gates += tl.load(at, mask=there, other=0.0).to(tl.float32) * value[None, :]
        at += rows_out * size
        ups += tl.load(at, mask=there, other=0.0).to(tl.float32) * value[None, :]
    kind = out.dtype.element_ty
    gate = tl.sum(gates, 1).to(kind).to(tl.float32)
    up = tl.sum(ups, 1).to(kind).to(tl.float32)
    active = (gate * tl.sigmoid(gate)).to(kind).to(tl.float32)
    tl.store(out + row, (active * up).to(kind), mask=row < rows_out)


@triton.jit
def _linear_added(
    x,
    weight,
    residual,
    out,
    rows_out,
    size: tl.constexpr,
    block_rows: tl.constexpr,
    block: tl.constexpr,
    stages: tl.constexpr,
):
    """Rows of ``residual + weight @ x``."""
    row = tl.program_id(0) * block_rows + tl.arange(0, block_rows)
    total = tl.zeros((block_rows, block), tl.float32)
    for begin in tl.range(0, size, block, num_stages=stages):
        place = begin + tl.arange(0, block)
        inside = place < size
        value = tl.load(x + place, mask=inside, other=0.0).to(tl.float32)
        at = weight + row[:, None] * size + place[None, :]
        part = tl.load(at, mask=(row < rows_out)[:, None] & inside[None, :], other=0.0)
        total += part.to(tl.float32) * value[None, :]
    kind = out.dtype.element_ty
    result = tl.sum(total, 1).to(kind).to(tl.float32)
    before = tl.load(residual + row, mask=row < rows_out, other=0.0).to(tl.float32)
    tl.store(out + row, (before + result).to(kind), mask=row < rows_out)


@triton.jit
def _attend(
    joined,
    cos,
    sin,
    start,
    keys,
    values,
    sums,
    tops,
    weights,
    capacity,
    scaling,
    group: tl.constexpr,
    heads: tl.constexpr,
    shared: tl.constexpr,
    width: tl.constexpr,
    rows: tl.constexpr,
    splits: tl.constexpr,
    block: tl.constexpr,
):
    """One part of the filled slots for the query heads of one shared head.

    Rotates query and key; part 0 also writes key and value to the cache, and attends to them from
    where they are, so that no part reads what another writes.
    """
    head, split = tl.program_id(0), tl.program_id(1)
    at = tl.load(start)
    row, place = tl.arange(0, rows), tl.arange(0, width)
    turned = (place + width // 2) % width
    c = tl.load(cos + place).to(tl.float32)
    s = tl.load(sin + place).to(tl.float32)
    there = (row < group)[:, None]
    own = joined + (head * group + row)[:, None] * width
    query = tl.load(own + place[None, :], mask=there, other=0.0).to(tl.float32) * c[None, :]
    query += tl.load(own + turned[None, :], mask=there, other=0.0).to(tl.float32) * s[None, :]
    kind = keys.dtype.element_ty
    query = query.to(kind)

    best = tl.full((rows,), -1e30, tl.float32)
    weight = tl.zeros((rows,), tl.float32)
    total = tl.zeros((rows, width), tl.float32)
    part = tl.cdiv(tl.cdiv(at, splits), block) * block
    first = split * part
    last = tl.minimum(first + part, at)
    base = head.to(tl.int64) * capacity * width
    for begin in range(first, last, block):
        slot = begin + tl.arange(0, block)
        filled = slot < last
        where = base + slot.to(tl.int64)[:, None] * width + place[None, :]
        key = tl.load(keys + where, mask=filled[:, None], other=0.0)
        value = tl.load(values + where, mask=filled[:, None], other=0.0)
        score = tl.dot(query, tl.trans(key)).to(tl.float32) * scaling
        score = tl.where(filled[None, :], score, -1e30)
        top = tl.maximum(best, tl.max(score, 1))
        share = tl.exp(score - top[:, None])
        share = tl.where(filled[None, :], share, 0.0)
        kept = tl.exp(best - top)
        weight = weight * kept + tl.sum(share, 1)
        total = total * kept[:, None] + tl.dot(share.to(kind), value).to(tl.float32)
        best = top
    if split == 0:
        new = joined + (heads + head) * width
        key = tl.load(new + place).to(tl.float32) * c + tl.load(new + turned).to(tl.float32) * s
        key = key.to(kind)
        value = tl.load(new + shared * width + place)
        spot = base + at.to(tl.int64) * width + place
        tl.store(keys + spot, key)
        tl.store(values + spot, value)
        score = tl.sum(query.to(tl.float32) * key.to(tl.float32)[None, :], 1) * scaling
        top = tl.maximum(best, score)
        share = tl.exp(score - top)
        kept = tl.exp(best - top)
        weight = weight * kept + share
        total = total * kept[:, None] + share[:, None] * value.to(tl.float32)[None, :]
        best = top
    number = (head * group + row) * splits + split
    tl.store(tops + number, best, mask=row < group)
    tl.store(weights + number, weight, mask=row < group)
    tl.store(sums + number[:, None] * width + place[None, :], total, mask=there)


@triton.jit
def _join(sums, tops, weights, out, width: tl.constexpr, splits: tl.constexpr):
    """The parts of one query head, joined."""
    head = tl.program_id(0)
    part, place = tl.arange(0, splits), tl.arange(0, width)
    top = tl.load(tops + head * splits + part)
    factor = tl.exp(top - tl.max(top, 0))
    weight = tl.sum(factor * tl.load(weights + head * splits + part), 0)
    at = sums + (head * splits + part)[:, None] * width + place[None, :]
    total = tl.sum(tl.load(at) * factor[:, None], 0)
    tl.store(out + head * width + place, (total / weight).to(out.dtype.element_ty))


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
        model: a decoder without norms of query and key.
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
        out = _attention(joined, cos, sin, start, cache, number, attention.scaling)
        state = _added(out, attention.o_proj.weight, state)
        active = _gated(state, layer.post_attention_layernorm, cache.gates[number].weight)
        state = _added(active, mlp.down_proj.weight, state)
    state = rms_norm(model.norm, state)
    if len(model.layers) in keep:
        kept[len(model.layers)] = state
    return state, kept


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
    _norm_linear[(triton.cdiv(rows, block_rows),)](
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
    _norm_gated[(triton.cdiv(both // 2, block_rows),)](
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
    _linear_added[(triton.cdiv(rows, block_rows),)](
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
    scaling: float,
) -> torch.Tensor:
    heads, shared, width = cache.heads, cache.shared, cache.width
    parts = torch.empty(heads, SPLITS, width, dtype=torch.float32, device=joined.device)
    tops = torch.empty(2, heads, SPLITS, dtype=torch.float32, device=joined.device)
    keys, values = cache.keys[number], cache.values[number]
    group = heads // shared
    _attend[(shared, SPLITS)](
        joined,
        cos,
        sin,
        start,
        keys,
        values,
        parts,
        tops[0],
        tops[1],
        keys.shape[2],
        scaling,
        group,
        heads,
        shared,
        width,
        max(ROWS, triton.next_power_of_2(group)),
        SPLITS,
        ATTENDED,
        num_warps=4,
    )
    out = joined.new_empty(1, heads * width)
    _join[(heads,)](parts, tops[0], tops[1], out, width, SPLITS, num_warps=4)
    return out
