"""Codes to sound, frame after frame: the 12 Hz decoder with its past in one block of memory.

The decoder is causal: convolutions look back over a few samples, its transformer over 72 frames.
What they see of the past is kept, so each frame is computed once, and all frames joined are the
decode of everything. One frame gives exactly 1920 samples.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from hfd.models.graphs.attention import MASKED, static_attention
from hfd.models.graphs.capture import Lane, Step
from hfd.models.graphs.decoder import rms_norm, rotate, signed
from hfd.models.graphs.fused import Fused
from hfd.models.tts.protocol import FRAME_SAMPLES, MAX_EMIT_FRAMES

SIZES = (8, 4, 2, 1)
"""Frames of one call; a chunk of another size takes several calls."""


class StreamDecoder:
    """Decodes the frames of several utterances, each in a slot of its own."""

    def __init__(self, decoder: Any, slots: int, length: int, lane: Lane | None) -> None:
        """Take over a ``Qwen3TTSTokenizerV2Decoder``.

        Args:
            decoder: the codec.
            slots: utterances at a time.
            length: frames of the longest utterance.
            lane: where to capture.

        Raises:
            ValueError: the codec gives another number of samples a frame.
        """
        if int(decoder.total_upsample) != FRAME_SAMPLES:
            raise ValueError(f"the codec gives {decoder.total_upsample} samples a frame")
        weight = decoder.pre_conv.conv.weight
        integers = {"dtype": torch.long, "device": weight.device}
        self._past = _Past(weight, slots)
        self._layers = _Layers(decoder, self._past, length)
        self._past.allocate()
        groups = decoder.config.num_quantizers
        self._codes = torch.zeros(groups, MAX_EMIT_FRAMES, **integers)
        self._position = torch.zeros(1, **integers)
        self._pcm = torch.zeros(
            MAX_EMIT_FRAMES * FRAME_SAMPLES, dtype=torch.int16, device=weight.device
        )
        self._waiting: list[list[Sequence[int]]] = [[] for _ in range(slots)]
        self._done = [0] * slots
        written = [self._pcm, self._past.store, self._past.current]
        self._steps = {size: Step(self._decoding(size), lane, written) for size in SIZES}

    def reset(self, slot: int) -> None:
        """Forget the slot's utterance."""
        self._past.store[slot].zero_()
        self._waiting[slot].clear()
        self._done[slot] = 0

    def add(self, slot: int, codes: Sequence[int]) -> None:
        """Append one frame: a code for each group."""
        self._waiting[slot].append(codes)

    def pcm(self, slot: int, frames: int) -> np.ndarray:
        """The slot's next `frames` (at most 8) frames: int16, shape [frames * 1920]."""
        given, self._waiting[slot] = self._waiting[slot][:frames], self._waiting[slot][frames:]
        self._past.slot.fill_(slot)
        parts = []
        for size in SIZES:
            if len(given) >= size:
                self._codes[:, :size] = torch.tensor(given[:size]).T
                self._position.fill_(self._done[slot])
                self._steps[size]()
                parts.append(self._pcm[: size * FRAME_SAMPLES].cpu().numpy().copy())
                self._done[slot] += size
                given = given[size:]
        return np.concatenate(parts)

    def _decoding(self, size: int) -> Callable[[], None]:
        def run() -> None:
            self._past.load()
            wave = self._layers(self._codes[:, :size], self._position)
            self._pcm[: size * FRAME_SAMPLES] = (wave.float() * 32767.0).round().to(torch.int16)
            self._past.save()

        return run


class _Past:
    """What every layer keeps of one utterance, in one row of a block: copied in and out as a whole.

    Attributes:
        slot: the row in use, int64 [1].
        current: a copy of that row, of which `pieces` are views.
        store: [slots, size].
    """

    def __init__(self, like: torch.Tensor, slots: int) -> None:
        self._like, self._slots = like, slots
        self._shapes: list[tuple[int, ...]] = []
        self.pieces: list[torch.Tensor] = []

    def add(self, *shape: int) -> int:
        """Ask for a piece; gives its number."""
        self._shapes.append(shape)
        return len(self._shapes) - 1

    def allocate(self) -> None:
        """Make all pieces that were asked for, on borders of 64 values."""
        sizes = [-(-int(np.prod(shape)) // 64) * 64 for shape in self._shapes]
        self.current = self._like.new_zeros(sum(sizes))
        self.store = self._like.new_zeros(self._slots, sum(sizes))
        self.slot = torch.zeros(1, dtype=torch.long, device=self._like.device)
        parts = self.current.split(sizes)
        self.pieces = [
            part[: int(np.prod(shape))].view(shape)
            for part, shape in zip(parts, self._shapes, strict=True)
        ]

    def load(self) -> None:
        self.current.copy_(self.store.index_select(0, self.slot)[0])

    def save(self) -> None:
        self.store.index_copy_(0, self.slot, self.current[None])

    def join(self, piece: int, states: torch.Tensor, axis: int = -1) -> torch.Tensor:
        """`states` behind the piece along `axis`; the end of both is kept for the next call."""
        past = self.pieces[piece]
        joined = torch.cat([past, states], dim=axis)
        length = past.shape[axis]
        past.copy_(joined.narrow(axis, joined.shape[axis] - length, length))
        return joined


class _Layers:
    """The decoder's own forward for the next frames of an utterance."""

    def __init__(self, decoder: Any, past: _Past, length: int) -> None:
        self._decoder, self._past = decoder, past
        self._table = _code_table(decoder.quantizer)
        self._group_numbers = torch.arange(len(self._table), device=self._table.device)[:, None]
        self._transformer = _Transformer(decoder.pre_transformer, past, length)
        self._pieces: dict[nn.Module, int] = {}
        self._waves: dict[nn.Module, tuple[torch.Tensor, torch.Tensor]] = {}
        for module in decoder.modules():
            self._prepare(module)

    def _prepare(self, module: nn.Module) -> None:
        """Ask for what a convolution keeps; compute what a snake needs of its parameters."""
        kind = type(module).__name__
        if kind.endswith("CausalConvNet") and module.padding:
            self._pieces[module] = self._past.add(1, module.conv.in_channels, module.padding)
        elif kind.endswith("CausalTransConvNet"):
            kernel, stride = module.conv.kernel_size[0], module.conv.stride[0]
            if kernel > stride:
                frames = -(-kernel // stride) - 1
                self._pieces[module] = self._past.add(1, module.conv.in_channels, frames)
        elif kind == "SnakeBeta":
            alpha, beta = (
                part.detach().exp()[None, :, None] for part in (module.alpha, module.beta)
            )
            self._waves[module] = alpha, 1.0 / (beta + module.no_div_by_zero)

    def __call__(self, codes: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        """Samples [n * 1920] in [-1, 1] of codes [groups, n] at frame `position` [1]."""
        decoder = self._decoder
        hidden = self._table[self._group_numbers, codes].sum(0).to(decoder.pre_conv.conv.weight)
        hidden = self._conv(decoder.pre_conv, hidden.T[None])
        hidden = self._transformer(hidden.transpose(1, 2), position).transpose(1, 2)
        for up, block in decoder.upsample:
            hidden = self._next(block, self._up(up, hidden))
        first, *blocks, snake, last = decoder.decoder
        hidden = self._conv(first, hidden)
        for block in blocks:
            snake_in, up, *units = block.block
            hidden = self._up(up, self._wave(snake_in, hidden))
            for unit in units:
                inner = self._conv(unit.conv1, self._wave(unit.act1, hidden))
                hidden = hidden + self._conv(unit.conv2, self._wave(unit.act2, inner))
        return self._conv(last, self._wave(snake, hidden)).clamp(min=-1, max=1)[0, 0]

    def _conv(self, module: Any, states: torch.Tensor) -> torch.Tensor:
        piece = self._pieces.get(module)
        return module.conv(states if piece is None else self._past.join(piece, states))

    def _up(self, module: Any, states: torch.Tensor) -> torch.Tensor:
        """A transposed convolution, of whose outputs the past ones are dropped."""
        stride, piece = module.conv.stride[0], self._pieces.get(module)
        if piece is None:
            return module.conv(states)
        joined = self._past.join(piece, states)
        skipped = joined.shape[-1] - states.shape[-1]
        return module.conv(joined)[..., skipped * stride : joined.shape[-1] * stride]

    def _next(self, module: Any, states: torch.Tensor) -> torch.Tensor:
        """A ConvNeXt block."""
        inner = module.norm(self._conv(module.dwconv, states).transpose(1, 2))
        inner = module.gamma * module.pwconv2(module.act(module.pwconv1(inner)))
        return states + inner.transpose(1, 2)

    def _wave(self, module: nn.Module, states: torch.Tensor) -> torch.Tensor:
        alpha, inverse_beta = self._waves[module]
        return states + inverse_beta * torch.sin(states * alpha).pow(2)


class _Transformer:
    """The decoder's transformer with a sliding window, over keys and values that are kept."""

    def __init__(self, model: Any, past: _Past, length: int) -> None:
        self._model, self._past = model, past
        attention = model.layers[0].self_attn
        weight = attention.k_proj.weight
        self._width = attention.head_dim
        self._heads = attention.q_proj.out_features // self._width
        self._shared = attention.k_proj.out_features // self._width
        self._window = model.window_size
        self._slots = -(-(self._window - 1 + max(SIZES)) // 8) * 8  # attention kernels want eights
        shape = (1, self._shared, self._slots - 1, self._width)
        self._pieces = [(past.add(*shape), past.add(*shape)) for _ in model.layers]
        parts = [layer.self_attn for layer in model.layers]
        self._projections = [Fused(part.q_proj, part.k_proj, part.v_proj) for part in parts]
        self._gates = [Fused(layer.mlp.gate_proj, layer.mlp.up_proj) for layer in model.layers]
        places = torch.arange(length + max(SIZES), device=weight.device)
        cos, sin = model.rotary_emb(weight, places[None])
        self._cos, self._sin = cos[0, :, None], signed(sin)[0, :, None]
        self._places = places
        self._newest = torch.arange(self._slots, device=weight.device) - self._slots

    def __call__(self, states: torch.Tensor, position: torch.Tensor) -> torch.Tensor:
        """Frames [1, n, latent] behind the past, the first of them number `position` [1]."""
        model, count = self._model, states.shape[1]
        positions = position + self._places[:count]
        rotation = self._cos.index_select(0, positions), self._sin.index_select(0, positions)
        bias = self._bias(position, count, states.dtype)
        states = model.input_proj(states)
        for number, layer in enumerate(model.layers):
            joined = self._projections[number](rms_norm(layer.input_layernorm, states))
            joined = joined.unflatten(-1, (-1, self._width))
            turned = rotate(joined[..., : -self._shared, :], *rotation)
            query, key = turned[..., : self._heads, :], turned[..., self._heads :, :]
            keys, values = (
                self._past.join(piece, part.transpose(1, 2), axis=2)[:, :, -self._slots :]
                for piece, part in zip(
                    self._pieces[number], (key, joined[..., -self._shared :, :]), strict=True
                )
            )
            attention = layer.self_attn
            out = static_attention(query.transpose(1, 2), keys, values, bias, attention.scaling)
            scale = layer.self_attn_layer_scale.scale
            states = torch.addcmul(states, scale, attention.o_proj(out))
            normed = rms_norm(layer.post_attention_layernorm, states)
            gate, up = self._gates[number](normed).chunk(2, dim=-1)
            added = layer.mlp.down_proj(layer.mlp.act_fn(gate) * up)
            states = torch.addcmul(states, layer.mlp_layer_scale.scale, added)
        return model.output_proj(rms_norm(model.norm, states))

    def _bias(self, position: torch.Tensor, count: int, dtype: torch.dtype) -> torch.Tensor:
        """Mask [1, 1, group * count, slots]; the last slots are the new frames."""
        places, group = self._places, self._heads // self._shared
        frames = position + count + self._newest  # numbers of the slots' frames
        distance = (position + places[:count])[:, None] - frames
        hidden = (distance < 0) | (distance >= self._window) | (frames < 0)
        bias = torch.zeros(hidden.shape, dtype=dtype, device=places.device)
        return bias.masked_fill(hidden, MASKED).repeat(group, 1)[None, None]


def _code_table(quantizer: Any) -> torch.Tensor:
    """What each code of each group adds, through the output projections: [groups, codes, size].

    In float32: the groups are summed before the sum is rounded.
    """
    tables = []
    for residual in (quantizer.rvq_first, quantizer.rvq_rest):
        project = residual.output_proj.weight[..., 0].float()
        for layer in residual.vq.layers:
            book = layer._codebook
            usage = book.cluster_usage.float().clamp(min=book.epsilon)
            embedding = layer.project_out(
                (book.embedding_sum.float() / usage[:, None]).to(book.embedding_sum.dtype)
            )
            tables.append(embedding.float() @ project.T)
    return torch.stack(tables).detach()
