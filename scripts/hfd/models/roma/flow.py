"""Codes to mel to samples on static shapes, with everything that is constant computed once.

Upstream evaluates its flow model 36 times per call, and each time encodes the reference voice,
embeds the codes and derives every layer's modulation again, and copies CPU tensors to the device.
Here the voice and all modulations are computed at loading and the codes once per call, and the
whole solver runs on buffers that one CUDA graph can hold. Modules and weights are upstream's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch.nn import functional as F

from hfd.models.graphs.decoder import fuse
from hfd.models.graphs.fused import Fused
from hfd.models.roma.checkpoint import Speaker
from hfd.models.roma.steps import FRAMES_PER_CODE


class Conditions:
    """What the flow model is told beside its state, computed as rarely as it changes."""

    def __init__(self, model: torch.nn.Module, speaker: Speaker, times: torch.Tensor) -> None:
        self._model = model
        voices = torch.cat([speaker.reference_mel, torch.zeros_like(speaker.reference_mel)])
        self._voice = model.input_embed.spk_encoder(voices)[:, None]
        self._speaker = torch.cat([speaker.condition, torch.zeros_like(speaker.condition)])[:, None]
        starts, ends = times[:-1], times[1:]
        self.steps = ends - starts
        stages = [starts, starts + self.steps * (1 / 3), starts + self.steps * (2 / 3), ends]
        self.modulations = torch.stack([self._modulation(stage) for stage in stages], dim=1)
        """Shift, 1 + scale, gate of every layer: [solver steps, 4, 6 * layers + 2, hidden]."""

    def _modulation(self, times: torch.Tensor) -> torch.Tensor:
        """Modulations at `times` [steps]: six rows per layer, then two for the output."""
        model = self._model
        told = F.silu(model.time_embed(times))
        rows = [block.attn_norm.linear(told) for block in model.transformer_blocks]
        table = torch.cat([*rows, model.norm_out.linear(told)], dim=-1)
        table = table.unflatten(-1, (-1, model.hidden_size))
        scales = [6 * layer + row for layer in range(len(rows)) for row in (1, 4)]
        table[:, [*scales, table.shape[1] - 2]] += 1
        return table

    def of(self, codes: torch.Tensor) -> torch.Tensor:
        """Conditions of `codes` [codes] through the entry projection, [2, frames, hidden]."""
        model, entry = self._model, self._model.input_embed
        told = torch.cat(
            [model.text_embed(codes[None]), model.text_embed(codes[None], drop_code=True)]
        )
        frames = told.shape[1]
        parts = [self._voice.expand(-1, frames, -1), told, self._speaker.expand(-1, frames, -1)]
        weight = entry.proj.weight[:, model.mel_dim :]
        return F.linear(torch.cat(parts, dim=-1), weight, entry.proj.bias)


class Flow:
    """The whole solver for a window of `blocks` blocks, from codes and noise to mel frames.

    Attributes:
        frames: mel frames of the window.
        inputs: everything that a window brings, float32 in one piece, so that it takes one copy:
            noise [frames, mel], codes [frames / 2], and how many frames are valid (see `fill`).
    """

    def __init__(
        self,
        model: torch.nn.Module,
        blocks: int,
        guidance: float,
        conditions: Conditions,
        between: Between,
    ) -> None:
        self._model = model
        self._between = between
        self._guidance = guidance
        self._conditions = conditions
        self.frames = frames = blocks * model.block_size
        weight = model.proj_out.weight
        self._codes = frames // FRAMES_PER_CODE
        self.inputs = weight.new_zeros(frames * model.mel_dim + self._codes + 1)
        self.inputs[-1] = frames
        block = torch.arange(frames, device=weight.device) // model.block_size
        apart = block[None, :] - block[:, None]
        views = {(b.look_backward_block, b.look_ahead_block) for b in model.transformer_blocks}
        self._hidden = {(back, ahead): (apart < -back) | (apart > ahead) for back, ahead in views}
        self._numbers = torch.arange(frames, device=weight.device)
        self._masks: dict[tuple[int, int], torch.Tensor] = {}
        self._rotation = self._make_rotation(frames)
        parts = [block.attn for block in model.transformer_blocks]
        self._joint = [Fused(part.to_q, part.to_k, part.to_v) for part in parts]
        self._mel_weight = model.input_embed.proj.weight[:, : model.mel_dim]

    def fill(self, codes: torch.Tensor, noise: torch.Tensor) -> None:
        """Give the window its `codes` [codes] and `noise` [2 * codes, mel], both on the CPU.

        What they leave of the window is hidden from them. On a GPU this waits for nothing: the
        copy is made from page-locked memory, in the order of the current stream.
        """
        frames, size = noise.shape
        packed = torch.zeros(self.inputs.shape, pin_memory=self.inputs.is_cuda)
        packed[: frames * size] = noise.flatten()
        packed[self.frames * size :][: codes.shape[0]] = codes
        packed[-1] = frames
        self.inputs.copy_(packed, non_blocking=True)

    def _make_rotation(self, frames: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and signed sines [frames, 2 * heads, width]; only head 0 of each half turns."""
        model = self._model
        frequencies = model.rotary_embed.inv_freq.to(self.inputs)
        angles = torch.arange(frames, device=frequencies.device)[:, None] * frequencies
        angle_cos, angle_sin = angles.cos(), angles.sin()
        width = 2 * frequencies.shape[0]
        cos = torch.ones(frames, 2 * model.num_attention_heads, width, device=angles.device)
        sin = torch.zeros_like(cos)
        for head in (0, model.num_attention_heads):
            cos[:, head] = angle_cos.repeat_interleave(2, dim=-1)
            sin[:, head] = torch.stack([-angle_sin, angle_sin], dim=-1).flatten(-2)
        return cos, sin

    def __call__(self) -> torch.Tensor:
        """Mel frames [frames, mel] of what `fill` gave."""
        size, told = self._model.mel_dim, self._conditions
        noise, codes, valid = self.inputs.split([self.frames * size, self._codes, 1])
        inputs = told.of(codes.long())
        for view, hidden in self._hidden.items():
            outside = hidden | (self._numbers >= valid)
            self._masks[view] = torch.where(outside, -torch.inf, 0.0)[None, None]
        state = noise.view(1, self.frames, size)
        for modulation, step in zip(told.modulations, told.steps, strict=True):
            state = self._solve_step(inputs, modulation, state, step)
        return state[0]

    def _solve_step(
        self,
        inputs: torch.Tensor,
        modulation: torch.Tensor,
        start: torch.Tensor,
        step: torch.Tensor,
    ) -> torch.Tensor:
        """One Runge-Kutta step: four evaluations, each with its row of `modulation`."""
        k1 = self._velocity(inputs, modulation[0], start)
        k2 = self._velocity(inputs, modulation[1], start + step * k1 * (1 / 3))
        k3 = self._velocity(inputs, modulation[2], start + step * (k2 - k1 * (1 / 3)))
        k4 = self._velocity(inputs, modulation[3], start + step * (k1 - k2 + k3))
        return start + (k1 + 3 * (k2 + k3) + k4) * step / 8

    def _velocity(
        self, inputs: torch.Tensor, rows: torch.Tensor, state: torch.Tensor
    ) -> torch.Tensor:
        model, between = self._model, self._between
        hidden = inputs + F.linear(state, self._mel_weight)
        normed = between.norm(hidden, rows[0], rows[1])
        for number, block in enumerate(model.transformer_blocks):
            _, _, gate, shift_2, scale_2, gate_2 = rows[6 * number : 6 * number + 6]
            out = self._attend(block, self._joint[number], normed)
            hidden, normed = between.add(hidden, gate, out, shift_2, scale_2)
            last = number + 1 == len(model.transformer_blocks)
            shift, scale = (rows[-1], rows[-2]) if last else rows[6 * number + 6 : 6 * number + 8]
            hidden, normed = between.add(hidden, gate_2, block.ff(normed), shift, scale)
        guided, free = model.proj_out(normed).chunk(2)
        return guided + (guided - free) * self._guidance

    def _attend(self, block: torch.nn.Module, joint: Fused, states: torch.Tensor) -> torch.Tensor:
        """Block attention [2, frames, hidden]; pairs of neighbours turn, as the weights expect."""
        attention = block.attn
        joined = joint(states).unflatten(-1, (3 * attention.heads, -1))
        query, key, value = self._between.turn(joined, *self._rotation)
        mask = self._masks[block.look_backward_block, block.look_ahead_block]
        out = F.scaled_dot_product_attention(query, key, value, mask)
        return attention.to_out[0](out.transpose(1, 2).flatten(2))


def _norm(hidden: torch.Tensor, shift: torch.Tensor, scale: torch.Tensor) -> torch.Tensor:
    """Layer norm, modulated."""
    normed = F.layer_norm(hidden, hidden.shape[-1:], eps=1e-6)
    return torch.addcmul(shift, normed, scale)


def _add(
    hidden: torch.Tensor,
    gate: torch.Tensor,
    out: torch.Tensor,
    shift: torch.Tensor,
    scale: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """What a layer's part adds, and the norm before the next part."""
    hidden = torch.addcmul(hidden, gate, out)
    return hidden, _norm(hidden, shift, scale)


def _turn(
    joined: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Query, key and value [2, heads, frames, width] of the joint product."""
    heads = joined.shape[2] // 3
    both, value = joined[:, :, : 2 * heads], joined[:, :, 2 * heads :]
    swapped = both.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
    query, key = torch.addcmul(both * cos, swapped, sin).transpose(1, 2).chunk(2, dim=1)
    return query, key, value.transpose(1, 2)


@dataclass(frozen=True)
class Between:
    """What lies between the flow model's matrix products, as it is or in one kernel each."""

    norm: Callable[..., torch.Tensor] = _norm
    add: Callable[..., tuple[torch.Tensor, torch.Tensor]] = _add
    turn: Callable[..., tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = _turn

    @classmethod
    def fused(cls) -> Between:
        return cls(*(fuse(function, dynamic=True) for function in (_norm, _add, _turn)))


def make_wave(vocoder: torch.nn.Module, mel: torch.Tensor) -> torch.Tensor:
    """Samples [240 * frames] of mel frames [frames, mel]: BigVGAN's forward without copies."""
    floor = math.exp(-115 / 20 * math.log(10))
    decibel = 20 * torch.log10(torch.exp(mel.T[None]).clamp(min=floor)) - 20
    hidden = vocoder.conv_pre((2 * (decibel + 115) / 115 - 1).clamp(-1, 1))
    for number, (upsample,) in enumerate(vocoder.ups):
        hidden = upsample(hidden)
        first = number * vocoder.num_residual_blocks
        blocks = vocoder.resblocks[first : first + vocoder.num_residual_blocks]
        hidden = sum(block(hidden) for block in blocks) / vocoder.num_residual_blocks
    return vocoder.conv_post(vocoder.activation_post(hidden)).clamp(-1, 1).reshape(-1)
