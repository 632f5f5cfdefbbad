"""CUDA graphs: a step captured once, and lanes of graphs that may run beside each other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch


@dataclass(frozen=True)
class Lane:
    """Graphs that never run at the same time as each other, but may beside those of other lanes.

    Lanes share neither the memory of their graphs nor the scratch memory of matrix products, which
    belongs to the stream of capture: two lanes captured on one stream would spoil each other's
    sums at moments that no seed decides.
    """

    stream: torch.cuda.Stream
    pool: Any

    @classmethod
    def make(cls) -> Lane:
        return cls(torch.cuda.Stream(), torch.cuda.graph_pool_handle())


class Step:
    """A function on static tensors; on a GPU it is captured once and replayed at every call."""

    def __init__(self, function: Callable[[], Any], lane: Lane | None) -> None:
        self._function = function
        self._graph = None
        if lane is None:
            return
        lane.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(lane.stream):
            function()
        torch.cuda.current_stream().wait_stream(lane.stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, pool=lane.pool, stream=lane.stream):
            self._out = function()

    def __call__(self) -> Any:
        """Run. What comes back is the caller's: a copy, as any step of the lane may write there."""
        if self._graph is None:
            return self._function()
        self._graph.replay()
        if isinstance(self._out, tuple):
            return tuple(part.clone() for part in self._out)
        return None if self._out is None else self._out.clone()
