"""The language model and the talker over static caches, for upstream's own loops.

Upstream feeds its language model in small pieces (a token, an image, a second of sound), each a
pass of its own, most of which nobody asks for a result. Here a piece waits until logits are wanted
and is then read together with those after it: causally the same, in a tenth of the passes. What is
read goes through blocks of fixed sizes, padded at their end where causality hides it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import torch
from torch.nn import functional as F

from hfd.models.graphs.attention import causal_bias, count_parts
from hfd.models.graphs.capture import Lane, Step
from hfd.models.graphs.compiler import what_kernels_lack
from hfd.models.graphs.decoder import StaticCache, decode, signed

BLOCKS = (1, 32, 96, 160)
"""Tokens read at once: a token; sound alone; with one image; with two (146 tokens)."""
BUCKETS = (512, 1024, 2048, 4096, 6144, 8192, 12_288, 16_384, 24_576, 32_768)
"""Slots that attention runs over: the smallest that holds what is filled."""


class StaticDecoder:
    """A transformers decoder whose keys and values lie in one block of memory.

    Attributes:
        filled: positions that were read.
    """

    def __init__(
        self,
        model: Any,
        capacity: int,
        lane: Lane | None,
        finish: Callable[[torch.Tensor, torch.Tensor], Any],
    ) -> None:
        """Make room and the table of rotations.

        Args:
            model: with ``layers``, ``norm`` and ``rotary_emb``.
            capacity: positions.
            lane: where to capture; None runs every step as it is.
            finish: makes a step's result from its states [tokens, hidden] and the index of the
                last token that counts, int64 [1].
        """
        self._model, self._lane, self._finish = model, lane, finish
        self.cache = StaticCache(model, capacity)
        like = model.norm.weight
        positions = torch.arange(capacity, device=like.device)
        cos, sin = model.rotary_emb(like.new_zeros(1, capacity, 1), positions[None])
        self._cos, self._sin = cos[0, :, None], signed(sin)[0, :, None]
        self._group = self.cache.heads // self.cache.shared
        self._kernels = lane is not None and can_use_kernels(self.cache)
        self._embeds = like.new_zeros(1, BLOCKS[-1], like.shape[0])
        self._start = torch.zeros(1, dtype=torch.long, device=like.device)
        self._last = torch.zeros(1, dtype=torch.long, device=like.device)
        self._buckets = [*(bucket for bucket in BUCKETS if bucket < capacity), capacity]
        self._steps: dict[tuple[int, int], Step] = {}
        self.filled = 0

    def warm_up(self, blocks: Sequence[int] = BLOCKS) -> None:
        """Capture every step, once a token through the kernels is one through the layers.

        Raises:
            CaptureError: it is not.
        """
        if self._kernels:
            self._check_kernels()
        for tokens in blocks:
            for bucket in self._buckets:
                if bucket >= tokens:
                    self._step(tokens, self._bucket(tokens, bucket))

    def _check_kernels(self) -> None:
        """Compare them on a random token after a random context."""
        from hfd.models.graphs.single import check_token

        filled = min(300, self._buckets[0] - 1)
        self.cache.block[..., :filled, :].normal_()
        self._embeds[:, :1].normal_()
        self._start.fill_(filled)
        check_token(self._layers(1, self._buckets[0]), self._token())
        self.cache.block.zero_()

    def _bucket(self, tokens: int, slots: int) -> int:
        """The smallest bucket with room for `slots`; one does for all where kernels read them."""
        if tokens == 1 and self._kernels:
            return self._buckets[-1]
        return next((b for b in self._buckets if b >= slots), self._buckets[-1])

    def _step(self, tokens: int, bucket: int) -> Step:
        if (tokens, bucket) not in self._steps:
            self._steps[tokens, bucket] = Step(lambda: self._run(tokens, bucket), self._lane)
        return self._steps[tokens, bucket]

    def _run(self, tokens: int, bucket: int) -> Any:
        by_kernels = tokens == 1 and self._kernels
        states = self._token() if by_kernels else self._layers(tokens, bucket)
        return self._finish(states, self._last)

    def _token(self) -> torch.Tensor:
        """The first waiting token through the kernels: its state [1, hidden]."""
        from hfd.models.graphs.single import decode_token

        rotation = self._cos[self._start].flatten(), self._sin[self._start].flatten()
        return decode_token(self._model, self._embeds[0, :1], rotation, self._start, self.cache)[0]

    def _layers(self, tokens: int, bucket: int) -> torch.Tensor:
        """The first waiting tokens through the layers: their states [tokens, hidden]."""
        slots = self._start[:, None] + torch.arange(tokens, device=self._start.device)
        slots = slots.clamp(max=self._cos.shape[0] - 1)  # padding beyond the last slot
        embeds = self._embeds[:, :tokens]
        bias = causal_bias(self._start, tokens, bucket, self._group, embeds.dtype)
        rotation = self._cos[slots], self._sin[slots]
        parts = count_parts(tokens, bucket) if self._group > 1 else 1
        states, _ = decode(self._model, embeds, rotation, slots, bias, self.cache, parts=parts)
        return states[0]

    def read(self, embeds: torch.Tensor) -> list[tuple[int, Any]]:
        """Read embeddings [tokens, hidden].

        Returns:
            How many tokens each block had, and its result.
        """
        results = []
        for part in embeds.split(BLOCKS[-1]):
            count = part.shape[0]
            tokens = next(block for block in BLOCKS if block >= count)
            bucket = self._bucket(tokens, self.filled + tokens)
            self._embeds[0, :count] = part
            self._start.fill_(self.filled)
            self._last.fill_(count - 1)
            results.append((count, self._step(tokens, bucket)()))
            self.filled += count
        return results

    def rewind(self) -> None:
        """Forget everything; what lies in the slots is never read with weight."""
        self.filled = 0


def can_use_kernels(cache: StaticCache) -> bool:
    """Whether a GPU can read single tokens of this model through `hfd.models.graphs.single`."""
    is_power = cache.width & (cache.width - 1) == 0
    missing = None if is_power else "heads whose width is a power of two"
    missing = missing or what_kernels_lack()
    if missing:
        print(f"minicpmo: no kernels for tokens without {missing}; torch's own", file=sys.stderr)
    return missing is None


class Reader:
    """Takes the place of `feed` and of the cache in upstream's decoder of text."""

    def __init__(
        self, llm: Any, capacity: int, lane: Lane | None, wait: Callable[[], None] = lambda: None
    ) -> None:
        """Make room.

        Args:
            llm: upstream's language model.
            capacity: positions.
            lane: where to capture; None runs every step as it is.
            wait: lets what is launched afterwards see embeddings made on other streams.
        """

        def finish(states: torch.Tensor, last: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return llm.lm_head(states[last]), states

        self._decoder = StaticDecoder(llm.model, capacity, lane, finish)
        self._table = llm.get_input_embeddings().weight
        self._wait = wait
        self._waiting: list[torch.Tensor] = []

    def warm_up(self) -> None:
        self._decoder.warm_up()

    def embed_token(self, number: int | torch.Tensor) -> torch.Tensor:
        """Embeddings [tokens, hidden]; of one number, without sending it to the GPU first."""
        if isinstance(number, torch.Tensor):
            return F.embedding(number, self._table)
        return self._table[number : number + 1].clone()

    @torch.no_grad()
    def feed(
        self, embeds: torch.Tensor, return_logits: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor] | None:
        """Take embeddings [tokens, hidden]; read all that wait if the result is wanted.

        Returns:
            Logits of the last token [1, vocabulary] and states of these tokens [1, tokens, hidden],
            or None.
        """
        self._waiting.append(embeds)
        if not return_logits:
            return None
        results = self._read()
        states = torch.cat([part[:count] for count, (_, part) in results])
        return results[-1][1][0], states[-embeds.shape[0] :][None]

    def _read(self) -> list[tuple[int, Any]]:
        self._wait()
        waiting, self._waiting = torch.cat(self._waiting), []
        return self._decoder.read(waiting)

    def length(self) -> int:
        """Positions that were fed, read or not."""
        return self._decoder.filled + sum(part.shape[0] for part in self._waiting)

    def reset(self) -> None:
        self._waiting.clear()
        self._decoder.rewind()

    def contents(self) -> list[torch.Tensor]:
        """Keys and values of all positions, layer by layer; what waits is read first."""
        if self._waiting:
            self._read()
        filled = self._decoder.filled
        pairs = zip(self._decoder.cache.keys, self._decoder.cache.values, strict=True)
        return [part[:, :, :filled] for pair in pairs for part in pair]


def take_over(decoder: Any, reader: Reader) -> None:
    """Let upstream's decoder of text use `reader`; its own loop and sampling stay."""
    upstreams_reset = decoder.reset

    def reset() -> None:
        upstreams_reset()
        reader.reset()

    decoder.embed_token = reader.embed_token
    decoder.feed = reader.feed
    decoder.get_cache_length = reader.length
    decoder.reset = reset


class TurnCache:
    """What the talker's loop passes around as its keys and values: how much of a turn is read."""

    def __init__(self, length: int) -> None:
        self.length = length


class Talker:
    """Takes the place of the talker's transformer in upstream's loop over speech codes."""

    def __init__(self, model: Any, capacity: int, lane: Lane | None) -> None:
        self._decoder = StaticDecoder(model, capacity, lane, lambda states, last: states)

    def warm_up(self) -> None:
        self._decoder.warm_up(BLOCKS[:2])

    def forward(
        self,
        *,
        inputs_embeds: torch.Tensor,
        past_key_values: TurnCache | None = None,
        **_: Any,
    ) -> SimpleNamespace:
        """One pass: embeddings [1, tokens, hidden], at the positions after what is read."""
        self._decoder.filled = past_key_values.length if past_key_values else 0
        results = self._decoder.read(inputs_embeds[0])
        states = torch.cat([part[:count] for count, part in results])
        return SimpleNamespace(
            last_hidden_state=states[None], past_key_values=TurnCache(self._decoder.filled)
        )
