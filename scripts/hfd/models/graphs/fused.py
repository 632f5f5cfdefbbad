"""Linear layers that read the same input, run as one matrix product."""

from __future__ import annotations

import torch
from torch.nn import functional as F


class Fused:
    """Several linear layers with one input as one product.

    Their weights move into one tensor, of which each layer then holds its rows: nothing is stored
    twice and the layers go on working by themselves.
    """

    def __init__(self, *layers: torch.nn.Linear) -> None:
        self.sizes = [layer.out_features for layer in layers]
        self.weight = _share([layer.weight for layer in layers])
        biases = [layer.bias for layer in layers]
        if any(bias is not None for bias in biases):
            zeros = [self.weight.new_zeros(size) for size in self.sizes]
            filled = [z if b is None else b for b, z in zip(biases, zeros, strict=True)]
            self.bias = torch.cat([part.detach() for part in filled])
        else:
            self.bias = None

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        """Outputs of the layers, one after the other in the last dimension."""
        return F.linear(states, self.weight, self.bias)


def _share(weights: list[torch.nn.Parameter]) -> torch.Tensor:
    """One tensor of all the weights' rows, of which each weight is made a view."""
    rows, columns = sum(weight.shape[0] for weight in weights), weights[0].shape[1]
    if _lie_together(weights):
        return weights[0].detach().as_strided((rows, columns), (columns, 1))
    joined = torch.cat([weight.detach() for weight in weights])
    parts = joined.split([weight.shape[0] for weight in weights])
    for weight, part in zip(weights, parts, strict=True):
        weight.data = part
    return joined


def _lie_together(weights: list[torch.nn.Parameter]) -> bool:
    """Whether the weights follow each other in one block of memory, as after an earlier fusion."""
    if len({weight.untyped_storage().data_ptr() for weight in weights}) > 1:
        return False
    ends = [weight.storage_offset() + weight.numel() for weight in weights]
    return all(w.is_contiguous() for w in weights) and all(
        end == after.storage_offset() for end, after in zip(ends, weights[1:], strict=False)
    )
