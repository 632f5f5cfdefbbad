"""Codes to mel to samples on static shapes, with everything that is constant computed once.

Upstream evaluates its flow model 36 times per call, and each time encodes the reference voice,
embeds the codes and derives every layer's modulation again, and copies CPU tensors to the device.
Here the voice and all modulations are computed at loading, the codes once per call, and the steps
of the solver run on buffers that a CUDA graph can hold. Modules and weights are upstream's.
"""

from __future__ import annotations

import math

import torch
from torch.nn import functional as F

from hfd.models.graphs.fused import Fused
from hfd.models.roma.checkpoint import Speaker


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


class FlowStep:
    """One Runge-Kutta step (four evaluations) for a window of `blocks` blocks.

    Attributes:
        state: mel frames, [1, frames, mel]; a call moves it one step on.
        inputs: projected conditions of the guided and the free half, [2, frames, hidden].
        modulation: one row of `Conditions.modulations`; step: the step's length, scalar.
    """

    def __init__(self, model: torch.nn.Module, blocks: int, guidance: float) -> None:
        self._model = model
        self._guidance = guidance
        frames = blocks * model.block_size
        weight = model.proj_out.weight
        self.state = weight.new_zeros(1, frames, model.mel_dim)
        self.inputs = weight.new_zeros(2, frames, model.hidden_size)
        self.modulation = weight.new_zeros(4, 6 * model.layers + 2, model.hidden_size)
        self.step = weight.new_zeros(())
        block = torch.arange(frames, device=weight.device) // model.block_size
        self._apart = block[None, :] - block[:, None]
        views = {(b.look_backward_block, b.look_ahead_block) for b in model.transformer_blocks}
        self._masks = {view: weight.new_zeros(1, 1, frames, frames) for view in views}
        self._rotation = self._make_rotation(frames)
        parts = [block.attn for block in model.transformer_blocks]
        self._joint = [Fused(part.to_q, part.to_k, part.to_v) for part in parts]
        self._mel_weight = model.input_embed.proj.weight[:, : model.mel_dim]

    def _make_rotation(self, frames: int) -> tuple[torch.Tensor, torch.Tensor]:
        """Cosines and signed sines [frames, 2 * heads, width]; only head 0 of each half turns."""
        model = self._model
        frequencies = model.rotary_embed.inv_freq.to(self.state)
        angles = torch.arange(frames, device=frequencies.device)[:, None] * frequencies
        angle_cos, angle_sin = angles.cos(), angles.sin()
        width = 2 * frequencies.shape[0]
        cos = torch.ones(frames, 2 * model.num_attention_heads, width, device=angles.device)
        sin = torch.zeros_like(cos)
        for head in (0, model.num_attention_heads):
            cos[:, head] = angle_cos.repeat_interleave(2, dim=-1)
            sin[:, head] = torch.stack([-angle_sin, angle_sin], dim=-1).flatten(-2)
        return cos, sin

    def set_valid(self, frames: int) -> None:
        """Hide all frames from `frames` on."""
        for (back, ahead), mask in self._masks.items():
            hidden = (self._apart < -back) | (self._apart > ahead)
            hidden[:, frames:] = True
            mask.zero_().masked_fill_(hidden, -torch.inf)

    def __call__(self) -> None:
        step, start = self.step, self.state
        k1 = self._velocity(0, start)
        k2 = self._velocity(1, start + step * k1 * (1 / 3))
        k3 = self._velocity(2, start + step * (k2 - k1 * (1 / 3)))
        k4 = self._velocity(3, start + step * (k1 - k2 + k3))
        self.state.copy_(start + (k1 + 3 * (k2 + k3) + k4) * step / 8)

    def _velocity(self, stage: int, state: torch.Tensor) -> torch.Tensor:
        model, rows = self._model, self.modulation[stage]
        hidden = self.inputs + F.linear(state, self._mel_weight)
        for number, block in enumerate(model.transformer_blocks):
            shift, scale, gate, shift_2, scale_2, gate_2 = rows[6 * number : 6 * number + 6]
            normed = torch.addcmul(shift, self._norm(hidden), scale)
            hidden = torch.addcmul(hidden, gate, self._attend(block, self._joint[number], normed))
            normed = torch.addcmul(shift_2, self._norm(hidden), scale_2)
            hidden = torch.addcmul(hidden, gate_2, block.ff(normed))
        out = model.proj_out(torch.addcmul(rows[-1], self._norm(hidden), rows[-2]))
        guided, free = out.chunk(2)
        return guided + (guided - free) * self._guidance

    def _norm(self, states: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(states, states.shape[-1:], eps=1e-6)

    def _attend(self, block: torch.nn.Module, joint: Fused, states: torch.Tensor) -> torch.Tensor:
        """Block attention [2, frames, hidden]; pairs of neighbours turn, as the weights expect."""
        attention, (cos, sin) = block.attn, self._rotation
        joined = joint(states).unflatten(-1, (3 * attention.heads, -1))
        both = joined[:, :, : 2 * attention.heads]
        swapped = both.unflatten(-1, (-1, 2)).flip(-1).flatten(-2)
        both = torch.addcmul(both * cos, swapped, sin).transpose(1, 2)
        value = joined[:, :, 2 * attention.heads :].transpose(1, 2)
        mask = self._masks[block.look_backward_block, block.look_ahead_block]
        query, key = both.chunk(2, dim=1)
        out = F.scaled_dot_product_attention(query, key, value, mask)
        return attention.to_out[0](out.transpose(1, 2).flatten(2))


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
