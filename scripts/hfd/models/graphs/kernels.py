"""Kernels for one token in decoder layers, for GPUs (needs triton); `single` runs them.

Norms are computed inside the products that read them, biases, activations and residual sums inside
those that write them, and attention (which norms query and key where a model does) reads as many
slots as are filled. Sums are in float32; results are rounded where the plain layers round them.
"""

# Kernels are compiled by triton, whose arguments have no types that Python knows.
# mypy: disallow-untyped-defs=False, disallow-incomplete-defs=False

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _scale_of(x, eps, size: tl.constexpr, padded: tl.constexpr):
    """1 / root mean square of a vector."""
    place = tl.arange(0, padded)
    value = tl.load(x + place, mask=place < size, other=0.0).to(tl.float32)
    return tl.rsqrt(tl.sum(value * value, 0) / size + eps)


@triton.jit
def norm_linear(
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
def norm_gated(
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
def linear_added(
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
def _rotated(
    joined,
    norm,
    eps,
    begin,
    there,
    place,
    turned,
    cos,
    sin,
    width: tl.constexpr,
    has_norm: tl.constexpr,
    kind: tl.constexpr,
):
    """Heads that begin at `begin` (and are `there`), normed where the model does, and rotated."""
    straight = tl.load(joined + begin + place, mask=there, other=0.0).to(tl.float32)
    across = tl.load(joined + begin + turned, mask=there, other=0.0).to(tl.float32)
    if has_norm:
        squares = tl.sum(straight * straight, -1, keep_dims=True)
        scale = tl.rsqrt(squares / width + eps)
        straight = (straight * scale).to(kind).to(tl.float32)
        across = (across * scale).to(kind).to(tl.float32)
        straight *= tl.load(norm + begin + place, mask=there, other=0.0).to(tl.float32)
        across *= tl.load(norm + begin + turned, mask=there, other=0.0).to(tl.float32)
        straight, across = straight.to(kind).to(tl.float32), across.to(kind).to(tl.float32)
    return (straight * cos + across * sin).to(kind)


@triton.jit
def attend(
    joined,
    norm,
    eps,
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
    has_norm: tl.constexpr,
):
    """One part of the filled slots for the query heads of one shared head.

    Norms (with the weights `norm` of each head) and rotates query and key; part 0 also writes key
    and value to the cache, and attends to them from where they are, so that no part reads what
    another writes.
    """
    head, split = tl.program_id(0), tl.program_id(1)
    at = tl.load(start)
    row, place = tl.arange(0, rows), tl.arange(0, width)
    turned = (place + width // 2) % width
    c = tl.load(cos + place).to(tl.float32)
    s = tl.load(sin + place).to(tl.float32)
    there = (row < group)[:, None]
    kind = keys.dtype.element_ty
    query = _rotated(
        joined,
        norm,
        eps,
        (head * group + row)[:, None] * width,
        there,
        place[None, :],
        turned[None, :],
        c[None, :],
        s[None, :],
        width,
        has_norm,
        kind,
    )

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
        score = tl.dot(query, tl.trans(key), input_precision="ieee").to(tl.float32) * scaling
        score = tl.where(filled[None, :], score, -1e30)
        top = tl.maximum(best, tl.max(score, 1))
        share = tl.exp(score - top[:, None])
        share = tl.where(filled[None, :], share, 0.0)
        kept = tl.exp(best - top)
        weight = weight * kept + tl.sum(share, 1)
        added = tl.dot(share.to(kind), value, input_precision="ieee").to(tl.float32)
        total = total * kept[:, None] + added
        best = top
    if split == 0:
        own = (heads + head) * width
        key = _rotated(
            joined, norm, eps, own, place < width, place, turned, c, s, width, has_norm, kind
        )
        value = tl.load(joined + own + shared * width + place)
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
def join_parts(sums, tops, weights, out, width: tl.constexpr, splits: tl.constexpr):
    """The parts of one query head, joined."""
    head = tl.program_id(0)
    part, place = tl.arange(0, splits), tl.arange(0, width)
    top = tl.load(tops + head * splits + part)
    factor = tl.exp(top - tl.max(top, 0))
    weight = tl.sum(factor * tl.load(weights + head * splits + part), 0)
    at = sums + (head * splits + part)[:, None] * width + place[None, :]
    total = tl.sum(tl.load(at) * factor[:, None], 0)
    tl.store(out + head * width + place, (total / weight).to(out.dtype.element_ty))
