"""One of Qwen3-TTS's two transformers over a fixed cache, at positions given by a tensor."""

from __future__ import annotations

from typing import Any

import torch

from hfd.models.graphs.attention import causal_bias
from hfd.models.graphs.decoder import StaticCache, decode, signed


class Decoder:
    """A stack of decoder layers; position and slot of a token are the same number."""

    def __init__(self, model: Any, length: int, rope_axes: int) -> None:
        """Take over the layers, norm and rotary embedding of a transformers decoder.

        Args:
            model: has ``layers``, ``norm`` and ``rotary_emb``.
            length: positions the cache holds.
            rope_axes: 3 where the rotary embedding wants [3, 1, length] position ids, else 1. Text
                and speech have the same position on all axes.
        """
        self._model = model
        self._length = length
        self._cache = StaticCache(model, length)
        self._group = self._cache.heads // self._cache.shared
        probe = self._cache.keys[0]
        places = torch.arange(length, device=probe.device)
        shape = (3, 1, length) if rope_axes == 3 else (1, length)
        cos, sin = (
            part.reshape(-1, length, part.shape[-1])[0].to(probe.dtype)
            for part in model.rotary_emb(probe, places.expand(shape))
        )
        self._cos, self._sin = cos[:, None], signed(sin)[:, None]  # [length, 1, width]

    def __call__(self, states: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Normed states, shape of `states` [1, n, hidden], at `positions` [n] without gaps."""
        bias = causal_bias(positions[:1], len(positions), self._length, self._group, states.dtype)
        rotation = (
            self._cos.index_select(0, positions),
            self._sin.index_select(0, positions),
        )
        return decode(self._model, states, rotation, positions[None], bias, self._cache)[0]
