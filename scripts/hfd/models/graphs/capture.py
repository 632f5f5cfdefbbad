"""CUDA graphs: a step captured once and checked, in lanes that may run beside each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import torch

WARM_UPS = 3
"""Plain runs before a capture: libraries allocate and choose their kernels in the first ones."""
TOLERANCE = 0.02
"""Largest difference between a replay and a plain run, as a part of the largest value (bfloat16
keeps 8 bits). Integers have to be equal."""


class CaptureError(RuntimeError):
    """A captured step does not do what the plain one does."""


@dataclass(frozen=True)
class Lane:
    """Graphs that never run at the same time as each other, but may beside those of other lanes.

    Lanes share neither the memory of their graphs nor the scratch memory of matrix products, which
    belongs to the stream of capture: two lanes captured on one stream would spoil each other's
    sums at moments that no seed decides.

    Attributes:
        device: where all tensors of the lane's steps are. A graph holds what is launched on its
            stream's device; with another current device it would stay empty.
    """

    device: torch.device
    stream: torch.cuda.Stream
    pool: Any

    @classmethod
    def make(cls, device: torch.device, first: bool = False) -> Lane:
        """A lane on a CUDA `device`, whatever the current device is.

        Its kernels go before those of other lanes where both wait if it is the `first`.
        """
        with torch.cuda.device(device):
            for _ in range(_POOL):
                stream = torch.cuda.Stream(priority=-1 if first else 0)
                if (stream.device, stream.cuda_stream) not in _LANES:
                    lane = cls(stream.device, stream, torch.cuda.graph_pool_handle())
                    _LANES[stream.device, stream.cuda_stream] = lane
                    return lane
        raise RuntimeError(f"all {_POOL} streams of {device} have a lane already")


_POOL = 32
"""Streams of a priority that torch has for a device: it hands them out in turn, again and again."""
_LANES: WeakValueDictionary[tuple[torch.device, int], Lane] = WeakValueDictionary()
"""Lanes in use: two on one stream would share what only lanes of their own keep apart."""


class Step:
    """A function on static tensors; on a GPU it is captured once and replayed at every call."""

    def __init__(
        self,
        function: Callable[[], Any],
        lane: Lane | None,
        state: Sequence[torch.Tensor] = (),
        warm_ups: int = WARM_UPS,
    ) -> None:
        """Capture `function`, and compare one replay with one plain run.

        Args:
            function: reads and writes tensors that never move; gives a tensor, a tuple of tensors,
                or None.
            lane: where to capture; without one, every call runs the function as it is.
            state: the tensors that it writes and that a later call depends on. They are left as
                they were.
            warm_ups: plain runs before the capture; 1 where the same kernels have run before.

        Raises:
            CaptureError: the replay gave something else.
        """
        self._function = function
        self._graph: torch.cuda.CUDAGraph | None = None
        if lane is not None:
            with torch.cuda.device(lane.device):
                self._capture(lane, state, warm_ups)

    def __call__(self) -> Any:
        """Run. What comes back is the caller's: a copy, as any step of the lane may write there."""
        if self._graph is None:
            return self._function()
        self._graph.replay()
        if isinstance(self._out, tuple):
            return tuple(part.clone() for part in self._out)
        return None if self._out is None else self._out.clone()

    def _capture(self, lane: Lane, state: Sequence[torch.Tensor], warm_ups: int) -> None:
        before = [tensor.clone() for tensor in state]
        lane.stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(lane.stream):
            for _ in range(warm_ups):
                _restore(state, before)
                expected = _copies(self._function())
            expected += [tensor.clone() for tensor in state]
            _restore(state, before)
        torch.cuda.current_stream().wait_stream(lane.stream)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, pool=lane.pool, stream=lane.stream):
            self._out = self._function()
        for tensor in _parts(self._out):
            tensor.fill_(float("nan") if tensor.is_floating_point() else 1)
        self._graph.replay()
        check_equal([*_parts(self._out), *state], expected)
        _restore(state, before)


def check_equal(replayed: Sequence[torch.Tensor], expected: Sequence[torch.Tensor]) -> None:
    """Compare what a replay wrote with what the plain run wrote.

    Raises:
        CaptureError: they differ by more than `TOLERANCE`.
    """
    for number, (one, other) in enumerate(zip(replayed, expected, strict=True)):
        if not one.is_floating_point():
            same = torch.equal(one, other)
        else:
            most = other.float().nan_to_num().abs().max().item() if other.numel() else 0.0
            same = torch.allclose(
                one.float(), other.float(), rtol=0.0, atol=TOLERANCE * most, equal_nan=True
            )
        if not same:
            raise CaptureError(
                f"a captured step on {one.device} gives other values than the plain one"
                f" (tensor {number}, shape {list(one.shape)}, {one.dtype})"
            )


def _parts(out: Any) -> tuple[torch.Tensor, ...]:
    """The tensors that a step gives."""
    if out is None:
        return ()
    return out if isinstance(out, tuple) else (out,)


def _copies(out: Any) -> list[torch.Tensor]:
    return [tensor.clone() for tensor in _parts(out)]


def _restore(state: Sequence[torch.Tensor], values: Sequence[torch.Tensor]) -> None:
    for tensor, value in zip(state, values, strict=True):
        tensor.copy_(value)
