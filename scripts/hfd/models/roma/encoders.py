"""Upstream's encoders on one second, from their own submodules, without leaving the device.

Upstream's `forward` reads lengths back to the CPU in every layer, which no CUDA graph can hold. For
one second both are simple: the audio encoder sees one window, and the vision encoder's windows are
an attention mask (the order of tokens does not matter to it, so nothing is permuted).
"""

from __future__ import annotations

import torch
from torch.nn import functional as F

from hfd.models.graphs.decoder import rms_norm, rotate, signed
from hfd.models.graphs.fused import Fused
from hfd.models.roma.unit import Grid


class Vision:
    """The vision encoder for video frames of one grid."""

    def __init__(self, encoder: torch.nn.Module, grid: Grid) -> None:
        self._encoder = encoder
        weight = encoder.patch_embed.proj.weight
        rows = torch.arange(grid.height).repeat_interleave(grid.width)
        columns = torch.arange(grid.width).repeat(grid.height)
        # Each merged token is four patches, listed row by row.
        inner = torch.tensor([0, 0, 1, 1]), torch.tensor([0, 1, 0, 1])
        places = torch.stack(
            [
                (axis[:, None] * 2 + part).flatten()
                for axis, part in zip((rows, columns), inner, strict=True)
            ],
            dim=1,
        ).to(weight.device)
        cos, sin = encoder.rotary_pos_emb(weight, places)
        self._rotation = cos[:, None].float(), signed(sin[:, None].float())
        side = encoder.window_size // encoder.patch_size // encoder.spatial_merge_size
        window = ((rows // side) * grid.width + columns // side).repeat_interleave(4)
        apart = window[:, None] != window[None, :]
        mask = torch.zeros(apart.shape, dtype=weight.dtype).masked_fill(apart, -torch.inf)
        self._mask = mask.to(weight.device)[None, None]
        parts = [block.attn for block in encoder.blocks]
        self._joint = [Fused(part.q, part.k, part.v) for part in parts]

    def __call__(self, patches: torch.Tensor) -> torch.Tensor:
        """Vision tokens [grid.tokens, hidden] of patches [4 * grid.tokens, 1176]."""
        states = self._encoder.patch_embed(patches)
        for number, block in enumerate(self._encoder.blocks):
            mask = None if number in self._encoder.fullatt_block_indexes else self._mask
            states = states + self._attend(
                block.attn, self._joint[number](rms_norm(block.norm1, states)), mask
            )
            states = states + block.mlp(rms_norm(block.norm2, states))
        return self._encoder.merger(states)

    def _attend(self, attention, joint, mask):
        joint = joint.unflatten(-1, (3 * attention.num_heads, -1))
        both, value = joint.split([2 * attention.num_heads, attention.num_heads], dim=1)
        both = rotate(both.float(), *self._rotation).to(value.dtype)
        query, key = both.transpose(0, 1)[None].chunk(2, dim=1)
        value = value.transpose(0, 1)[None]
        out = F.scaled_dot_product_attention(query, key, value, mask, scale=attention.scaling)
        return attention.proj(out[0].transpose(0, 1).flatten(1))


def hear(encoder: torch.nn.Module, mel: torch.Tensor) -> torch.Tensor:
    """Audio tokens [25, hidden] of one second's mel frames [128, 100]."""
    states = F.gelu(encoder.conv1(mel[None]))
    states = F.gelu(encoder.conv2(states))[0].T
    places = encoder.positional_embedding.positional_embedding[: states.shape[0]]
    states = states + places.to(states.dtype)
    for layer in encoder.layers:
        attention, normed = layer.self_attn, layer.self_attn_layer_norm(states)
        query, key, value = (
            project(normed).unflatten(-1, (attention.num_heads, -1)).transpose(0, 1)[None]
            for project in (attention.q_proj, attention.k_proj, attention.v_proj)
        )
        out = F.scaled_dot_product_attention(query, key, value, scale=attention.scaling)
        states = states + attention.out_proj(out[0].transpose(0, 1).flatten(1))
        states = states + layer.fc2(layer.activation_fn(layer.fc1(layer.final_layer_norm(states))))
    states = (states[0::2] + states[1::2]) / 2
    return encoder.proj(encoder.ln_post(states))
