"""Codes to mel to samples on static shapes, with everything that is constant computed once.

Upstream evaluates its flow model 36 times per call, and each time encodes the reference voice and
embeds the codes again, and copies CPU tensors to the device. Here the voice is encoded at loading,
the codes once per call, and the steps of the solver run on buffers that a CUDA graph can hold.
"""

from __future__ import annotations

import math

import torch

from hfd.models.roma.checkpoint import Speaker

FAR = 1_000.0
"""Distance in blocks at which a padded frame lies: outside every layer's view."""


class FlowStep:
    """One Runge-Kutta step (four evaluations) for windows of up to `codes` codes.

    Attributes:
        state: mel frames, [1, frames, mel]; a call moves it one step on.
        inputs: projected conditions of the guided and the free half, [2, frames, hidden].
        times, step: time embeddings [4, hidden] and length of the step, scalar.
        distance: blocks from frame to frame, [1, 1, frames, frames]; `FAR` to padding.
    """

    def __init__(
        self, model: torch.nn.Module, speaker: Speaker, codes: int, guidance: float
    ) -> None:
        self._model = model
        self._guidance = guidance
        frames = codes * model.repeats
        device = speaker.condition.device
        self.frames = frames
        self.state = torch.zeros(1, frames, model.mel_dim, device=device)
        self.inputs = torch.zeros(2, frames, model.hidden_size, device=device)
        self.times = torch.zeros(4, model.hidden_size, device=device)
        self.step = torch.zeros((), device=device)
        blocks = torch.arange(frames, device=device) // model.block_size
        self._apart = (blocks[None, :] - blocks[:, None]).float()[None, None]
        self.distance = self._apart.clone()
        places = torch.arange(frames, device=device)[None]
        self._rotation = model.rotary_embed(self.inputs, places)
        self._mel_weight = model.input_embed.proj.weight[:, : model.mel_dim]

    def set_valid(self, frames: int) -> None:
        """Hide all frames from `frames` on."""
        self.distance.copy_(self._apart)
        self.distance[..., frames:] = FAR

    def __call__(self) -> None:
        step, start = self.step, self.state
        k1 = self._velocity(0, start)
        k2 = self._velocity(1, start + step * k1 * (1 / 3))
        k3 = self._velocity(2, start + step * (k2 - k1 * (1 / 3)))
        k4 = self._velocity(3, start + step * (k1 - k2 + k3))
        self.state.copy_(start + (k1 + 3 * (k2 + k3) + k4) * step / 8)

    def _velocity(self, number: int, state: torch.Tensor) -> torch.Tensor:
        model = self._model
        hidden = self.inputs + torch.nn.functional.linear(state, self._mel_weight)
        time = self.times[number].expand(2, -1)
        for block in model.transformer_blocks:
            hidden = block(
                hidden, time, position_embeddings=self._rotation, block_diff=self.distance
            )
        guided, free = model.proj_out(model.norm_out(hidden, time)).chunk(2)
        return guided + (guided - free) * self._guidance


class Conditions:
    """What the flow model is told beside its state, computed as rarely as it changes."""

    def __init__(self, model: torch.nn.Module, speaker: Speaker, times: torch.Tensor) -> None:
        self._model = model
        entry = model.input_embed
        voices = torch.cat([speaker.reference_mel, torch.zeros_like(speaker.reference_mel)])
        self._voice = entry.spk_encoder(voices)[:, None]
        self._speaker = torch.cat([speaker.condition, torch.zeros_like(speaker.condition)])[:, None]
        starts, ends = times[:-1], times[1:]
        self.steps = ends - starts
        stages = [starts, starts + self.steps * (1 / 3), starts + self.steps * (2 / 3), ends]
        self.times = torch.stack([model.time_embed(stage) for stage in stages], dim=1)
        """Time embeddings of every evaluation, [steps, 4, hidden]."""

    def of(self, codes: torch.Tensor) -> torch.Tensor:
        """Conditions of `codes` [codes] through the entry projection, [2, frames, hidden]."""
        model, entry = self._model, self._model.input_embed
        told = torch.cat(
            [model.text_embed(codes[None]), model.text_embed(codes[None], drop_code=True)]
        )
        frames = told.shape[1]
        parts = [self._voice.expand(-1, frames, -1), told, self._speaker.expand(-1, frames, -1)]
        weight = entry.proj.weight[:, model.mel_dim :]
        return torch.nn.functional.linear(torch.cat(parts, dim=-1), weight, entry.proj.bias)


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
