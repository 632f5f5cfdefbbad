"""A language model on static shapes: blocks of tokens, or single ones, over a cache made once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from hfd.errors import HfdError
from hfd.models.graphs.attention import causal_bias, count_parts
from hfd.models.graphs.decoder import StaticCache, decode
from hfd.models.roma.decoder import multimodal_rotation

BLOCK = 128
"""Tokens per block; a 16:9 unit has 113."""
BUCKETS = tuple(
    [2048 * count for count in range(1, 7)]
    + [4096 * count for count in (4, 5, 6, 8, 10, 12, 16, 20, 24, 28, 32, 40, 48)]
)


def whole_blocks(slots: int) -> int:
    """Slots of a cache in which the last block of `slots` tokens is whole, and parts are even."""
    return -(-(slots + BLOCK) // 8192) * 8192


class Reader:
    """A causal language model that is fed blocks (or single tokens) over a `StaticCache`.

    Args:
        model: upstream's text model.
        finish: makes the step's result from the states [tokens, hidden] after the norm, the kept
            states by number, and the index of the last token.
        keep: numbers of the hidden states that `finish` wants.
        capacity: slots of the cache.
        fused: whether single tokens go through `hfd.models.graphs.single` and the rest of the
            work between matrix products is compiled.
    """

    def __init__(
        self,
        model: Any,
        finish: Callable[..., Any],
        keep: Sequence[int],
        capacity: int,
        fused: bool,
    ) -> None:
        config, weight = model.config, model.norm.weight
        self._model = model
        self._finish = finish
        self._keep = frozenset(keep)
        self._group = config.num_attention_heads // config.num_key_value_heads
        self._cache = StaticCache(model, capacity, compiled=fused)
        self._fused = fused
        self.buckets = [*(b for b in BUCKETS if b < capacity), capacity]
        self.embeds = weight.new_zeros(BLOCK, weight.shape[0])
        self.positions = torch.zeros(3, BLOCK, dtype=torch.long, device=weight.device)
        self.start = torch.zeros((), dtype=torch.long, device=weight.device)
        self.last = torch.zeros(1, dtype=torch.long, device=weight.device)

    def bucket(self, tokens: int, slots: int) -> int:
        """The smallest bucket with room for `slots`; one does for all where a token is `fused`.

        Raises:
            HfdError: there is none.
        """
        for bucket in self.buckets:
            if bucket >= slots:
                return self.buckets[-1] if tokens == 1 and self._fused else bucket
        raise HfdError(
            f"needs {slots} slots of a cache that has {self.buckets[-1]}",
            field="settings.max_media_s",
            remedy="Raise it: the caches are made for it. Nothing is cropped",
        )

    def step(self, tokens: int, bucket: int) -> Any:
        """Run the static inputs' first `tokens` rows through the model, as it is captured."""
        if tokens == 1 and self._fused:
            return self._finish(*self._token(), self.last)
        return self._finish(*self._block(tokens, bucket), self.last)

    def _token(self) -> tuple[torch.Tensor, dict[int, torch.Tensor]]:
        """The first row through the fused kernels, which read as many slots as are filled."""
        from hfd.models.graphs.single import decode_token

        cos, sin = multimodal_rotation(self._model, self.positions[:, :1], self.embeds.dtype)
        rotation = cos.flatten(), sin.flatten()
        start = self.start[None]
        return decode_token(self._model, self.embeds[:1], rotation, start, self._cache, self._keep)

    def _block(self, tokens: int, bucket: int) -> tuple[torch.Tensor, dict[int, torch.Tensor]]:
        slots = self.start + torch.arange(tokens, device=self.start.device)
        bias = causal_bias(self.start[None], tokens, bucket, self._group, self.embeds.dtype)
        rotation = multimodal_rotation(self._model, self.positions[:, :tokens], self.embeds.dtype)
        states, kept = decode(
            self._model,
            self.embeds[None, :tokens],
            rotation,
            slots[None],
            bias,
            self._cache,
            self._keep,
            count_parts(tokens, bucket),
        )
        return states[0], {number: state[0] for number, state in kept.items()}

    def check_kernels(self) -> None:
        """Compare the fused kernels with the plain layers on a random token and context.

        Raises:
            CaptureError: they differ by more than rounding.
        """
        if not self._fused:
            return
        from hfd.models.graphs.single import check_token

        filled = min(1000, self.buckets[0] - 1)
        self._cache.block[..., :filled, :].normal_()
        self.fill(torch.randn_like(self.embeds[:1]), self.positions[:, :1] + filled, filled)
        plain, fused = self._block(1, self.buckets[0])[0], self._token()[0]
        self._cache.block.zero_()
        check_token(plain, fused)

    def fill(self, embeds: torch.Tensor, positions: torch.Tensor, start: int) -> None:
        """Set the static inputs to at most `BLOCK` tokens at slot `start`."""
        count = embeds.shape[0]
        self.embeds[:count] = embeds
        self.positions[:, :count] = positions.to(self.positions.device, non_blocking=True)
        self.start.fill_(start)
        self.last.fill_(count - 1)
