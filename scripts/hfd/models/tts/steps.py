"""One of Qwen3-TTS's two transformers over a fixed cache, at positions given by a tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from hfd.models.graphs.attention import causal_bias
from hfd.models.graphs.decoder import StaticCache, decode, signed


@dataclass(frozen=True)
class Place:
    """All that a pass needs to know of where its tokens stand.

    Attributes:
        positions: int64 [rows, n], without gaps.
        rotation: cosines and signed sines, [rows, n, 1, width].
        bias: mask over the slots that are read, [rows, 1, group * n, slots].
    """

    positions: torch.Tensor
    rotation: tuple[torch.Tensor, torch.Tensor]
    bias: torch.Tensor


class Decoder:
    """A stack of decoder layers; position and slot of a token are the same number.

    Attributes:
        cache: keys and values of all rows.
    """

    def __init__(self, model: Any, length: int, rope_axes: int, rows: int) -> None:
        """Take over the layers, norm and rotary embedding of a transformers decoder.

        Args:
            model: has ``layers``, ``norm`` and ``rotary_emb``.
            length: positions the cache holds.
            rope_axes: 3 where the rotary embedding wants [3, 1, length] position ids, else 1. Text
                and speech have the same position on all axes.
            rows: sequences side by side.
        """
        self._model = model
        self._length = length
        self.cache = StaticCache(model, length, rows)
        self._group = self.cache.heads // self.cache.shared
        places = torch.arange(length, device=self.cache.block.device)
        shape = (3, 1, length) if rope_axes == 3 else (1, length)
        cos, sin = model.rotary_emb(self.cache.block, places.expand(shape))
        # [..., length, width] of any axis -> [length, 1, width]
        self._cos, self._sin = (part.flatten(0, -3)[0][:, None] for part in (cos, signed(sin)))

    def place(self, positions: torch.Tensor, read: int | None = None) -> Place:
        """Where tokens at `positions` [rows, n] stand, which may be reused for any pass there.

        `read` is how many slots are read, all by default; what stands behind them is of no use.
        """
        dtype, read = self.cache.block.dtype, read or self._length
        bias = causal_bias(positions[:, 0], positions.shape[1], read, self._group, dtype)
        rotation = self._at(self._cos, positions), self._at(self._sin, positions)
        return Place(positions, rotation, bias)

    def __call__(self, states: torch.Tensor, place: Place) -> torch.Tensor:
        """Normed states of inputs `states`, both [rows, n, hidden]."""
        return decode(self._model, states, place.rotation, place.positions, place.bias, self.cache)[
            0
        ]

    def _at(self, table: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Rows of a table [length, 1, width] at `positions` [rows, n]: [rows, n, 1, width]."""
        return table.index_select(0, positions.flatten()).unflatten(0, positions.shape)
