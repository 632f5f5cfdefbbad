"""What Qwen2.5-Omni's text models add to `hfd.models.graphs.decoder`: rotation by three axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from hfd.models.graphs.decoder import signed


def multimodal_rotation(
    model: Any, positions: torch.Tensor, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cosines and signed sines [tokens, 1, width]: each section of the width turns by one axis."""
    rotary, sections = model.rotary_emb, model.config.rope_parameters["mrope_section"]
    angles = (positions[:, :, None].float() * rotary.inv_freq.float()).split(sections, dim=-1)
    half = torch.cat([part[axis % 3] for axis, part in enumerate(angles)], dim=-1)
    both = torch.cat([half, half], dim=-1)[:, None]
    scale = rotary.attention_scaling
    return (both.cos() * scale).to(dtype), signed((both.sin() * scale).to(dtype))


def layer_numbers(layers: Sequence[int], count: int) -> list[int]:
    """Indices into the `count` + 1 hidden states of a model with `count` layers, from 0."""
    return [layer % (count + 1) for layer in layers]
