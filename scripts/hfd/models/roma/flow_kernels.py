"""The flow model's matrix products with what follows them, for GPUs (needs triton).

A window has 48 to 336 rows: too few for the tiles of the libraries' products, which leave most of a
GPU idle. Small tiles use it, and bias, activation and gated sum are written with the product.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from hfd.models.graphs.fused import Fused

PLAIN, GELU, ADD = 0, 1, 2
"""What follows a product: nothing, GELU (its tanh form), or ``residual + gate * product``."""


@triton.jit
def _product(
    x,
    weight,
    bias,
    residual,
    gate,
    out,
    rows,
    columns,
    size: tl.constexpr,
    then: tl.constexpr,
    block_rows: tl.constexpr,
    block_columns: tl.constexpr,
    block: tl.constexpr,
    stages: tl.constexpr,
    precision: tl.constexpr,
):
    row = tl.program_id(0) * block_rows + tl.arange(0, block_rows)
    column = tl.program_id(1) * block_columns + tl.arange(0, block_columns)
    inside, place = row < rows, tl.arange(0, block)
    left = x + row[:, None] * size + place[None, :]
    right = weight + column[None, :] * size + place[:, None]
    total = tl.zeros((block_rows, block_columns), tl.float32)
    for _ in tl.range(0, size, block, num_stages=stages):
        part = tl.load(left, mask=inside[:, None], other=0.0)
        total = tl.dot(part, tl.load(right), total, input_precision=precision)
        left += block
        right += block
    total += tl.load(bias + column)[None, :]
    at = row[:, None] * columns + column[None, :]
    if then == 1:
        inner = 1.5957691216057308 * (total + 0.044715 * total * total * total)
        total = total * tl.sigmoid(inner)
    if then == 2:
        before = tl.load(residual + at, mask=inside[:, None], other=0.0)
        total = before + tl.load(gate + column)[None, :] * total
    tl.store(out + at, total, mask=inside[:, None])


def tile_of(rows: int, columns: int, size: int) -> tuple[int, int, int, int, int]:
    """Rows, columns and depth of a program's tile, warps, stages: the same on every GPU."""
    return 64 if rows > 64 else 16, 64, 32, 4, 4


def product(
    x: torch.Tensor,
    layer: torch.nn.Linear | Fused,
    then: int = PLAIN,
    residual: torch.Tensor | None = None,
    gate: torch.Tensor | None = None,
) -> torch.Tensor:
    """``layer(x)`` and what follows it.

    Args:
        x: float32 [..., size]; columns of the layer are multiples of 64, its size of 32.
        layer: weight [columns, size] and bias [columns].
        then: `PLAIN`, `GELU` or `ADD`.
        residual: [..., columns], for `ADD`.
        gate: [columns], for `ADD`.
    """
    columns, size = layer.weight.shape
    rows = x.numel() // size
    out = x.new_empty(*x.shape[:-1], columns)
    block_rows, block_columns, block, warps, stages = tile_of(rows, columns, size)
    tf32 = torch.backends.cuda.matmul.allow_tf32
    _product[(triton.cdiv(rows, block_rows), columns // block_columns)](
        x.contiguous(),
        layer.weight,
        layer.bias,
        out if residual is None else residual,
        layer.bias if gate is None else gate,
        out,
        rows,
        columns,
        size,
        then,
        block_rows,
        block_columns,
        block,
        stages,
        "tf32" if tf32 else "ieee",
        num_warps=warps,
    )
    return out
