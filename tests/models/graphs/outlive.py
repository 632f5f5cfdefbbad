"""Whether all that a captured step reads outlives its making: a graph reads memory, not tensors."""

from __future__ import annotations

import gc
from typing import Any

import pytest
import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from hfd.models.graphs.capture import Step


class Reads(TorchDispatchMode):
    """Notes the memory that is read without having been made meanwhile."""

    def __init__(self) -> None:
        super().__init__()
        self.outside: dict[int, StorageWeakRef] = {}
        self._made: set[int] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None):
        out = function(*args, **(kwargs or {}))
        for tensor in _tensors((args, kwargs or {})):
            reference = StorageWeakRef(tensor.untyped_storage())
            if reference.cdata not in self._made:
                self.outside.setdefault(reference.cdata, reference)
        for tensor in _tensors(out):
            number = StorageWeakRef(tensor.untyped_storage()).cdata
            if number not in self.outside:
                self._made.add(number)
        return out


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


class Outlive:
    """Steps that note what they would read if they were captured."""

    def __init__(self, patch: pytest.MonkeyPatch, *modules: Any) -> None:
        noted = self._noted = []

        class NotedStep(Step):
            def __init__(self, function: Any, lane: Any, *args: Any, **more: Any) -> None:
                super().__init__(function, None)
                with Reads() as reads:
                    function()
                noted.append(reads)

        for module in modules:
            patch.setattr(module, "Step", NotedStep)

    def check(self) -> None:
        """All that was read is still there."""
        gc.collect()
        assert self._noted
        for reads in self._noted:
            gone = [reference for reference in reads.outside.values() if reference.expired()]
            assert reads.outside and not gone, f"{len(gone)} tensors that a step reads are gone"
