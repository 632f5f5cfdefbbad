"""The head that decides, once a second, whether to speak."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch.nn import functional as F

LAYERS = (-4, -3, -2, -1)
"""Layers that are mixed where the config names none (``gate_layer_ids``). -1 is after the last
norm, the others are raw layer outputs."""
MIXER = "thinker.gate_mixer.logits"
HEADS = {
    "mlp": (
        "thinker.gate_head_pro_fc1.weight",
        "thinker.gate_head_pro_fc1.bias",
        "thinker.gate_head_pro_fc2.weight",
        "thinker.gate_head_pro_fc2.bias",
    ),
    "linear": ("thinker.gate_head.weight", "thinker.gate_head.bias"),
}
"""Checkpoint keys of each head; upstream's model does not know them and ignores them."""


def head_keys(kind: str) -> tuple[str, ...]:
    """All checkpoint keys the head `kind` needs."""
    return (MIXER, *HEADS[kind])


@dataclass(frozen=True)
class SpeakHead:
    """p(speak) from a mix of layers at the unit's closing token, always in float32.

    Attributes:
        layers: indices into the thinker's hidden states (0 = embeddings, last = after the norm).
        mix: softmax weights, [len(layers)].
        weights: weight and bias of one linear layer, or of two with an exact GELU between.
    """

    layers: tuple[int, ...]
    mix: torch.Tensor
    weights: tuple[torch.Tensor, ...]

    @classmethod
    def from_tensors(
        cls, kind: str, tensors: Mapping[str, torch.Tensor], layers: Sequence[int], device: str
    ) -> SpeakHead:
        """Build the head `kind` from the checkpoint's tensors, by their keys."""
        found = {key: tensors[key].to(device, torch.float32) for key in head_keys(kind)}
        mix = torch.softmax(found[MIXER].flatten(), dim=0)
        return cls(tuple(layers), mix, tuple(found[key] for key in HEADS[kind]))

    def probability(self, states: torch.Tensor) -> float:
        """p(speak) for the hidden `states` [len(layers), hidden] of one token."""
        mixed = self.mix @ states.float()
        out = F.linear(mixed, *self.weights[:2])
        if len(self.weights) == 4:
            out = F.linear(F.gelu(out), *self.weights[2:])
        return torch.sigmoid(out).item()
