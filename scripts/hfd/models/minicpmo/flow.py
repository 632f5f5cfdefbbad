"""The vocoder's flow solver captured as one graph for a whole second of sound.

Upstream's solver runs ten passes of a 16-layer transformer, each some thousand small kernels. A
usual second (25 codes, 50 mel frames) comes after a context of one of three lengths: the voice
alone, with one second, or with two, at which upstream cuts its cache. These three are captured;
every other chunk (the end of a turn) takes upstream's own way. The kernels are upstream's.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from hfd.models.graphs.capture import Lane, Step

CHUNK_FRAMES = 50
CONTEXTS = (0, 50, 100)
"""Mel frames before a usual second, besides the voice's."""


class FlowSolver:
    """Takes the place of `forward_chunk` of upstream's flow-matching decoder.

    Upstream's solver writes its new caches into buffers of its own; so does the captured one, as
    it is the same code on inputs that never move.
    """

    def __init__(self, decoder: Any, lane: Lane | None) -> None:
        self._decoder, self._lane = decoder, lane
        self._upstream = decoder.forward_chunk
        self._steps: dict[tuple[int, int], tuple[dict[str, torch.Tensor], Step]] = {}

    @torch.inference_mode()
    def warm_up(self, cache: Mapping[str, torch.Tensor], steps: int) -> None:
        """Capture a second after each usual context; `cache` is that of the voice."""
        voice = cache["estimator_att_cache"]
        frames, channels = voice.shape[4], self._decoder.out_channels
        shape = (*voice.shape[:4], frames + max(CONTEXTS), voice.shape[5])
        context = voice.new_zeros(shape)
        context[:, :, :, :, :frames] = voice
        inputs = {
            "mu": voice.new_zeros(1, channels, CHUNK_FRAMES),
            "spks": voice.new_zeros(1, channels),
            "cond": voice.new_zeros(1, channels, CHUNK_FRAMES),
            "cnn_cache": cache["estimator_cnn_cache"].clone(),
        }
        for more in CONTEXTS:
            given = {**inputs, "att_cache": context[:, :, :, :, : frames + more]}
            self._steps[frames + more, steps] = (given, self._capture(given, steps))

    def _capture(self, inputs: Mapping[str, torch.Tensor], steps: int) -> Step:
        def run() -> tuple[torch.Tensor, ...]:
            made, cnn, att = self._upstream(**inputs, n_timesteps=steps, temperature=1.0)
            return made, cnn[steps - 1].clone(), att[steps - 1, -1].clone()

        embedder = self._decoder.estimator.t_embedder
        times = _times_of(embedder, run)

        def with_known_times() -> tuple[torch.Tensor, ...]:
            with _known_times(embedder, times):
                return run()

        return Step(with_known_times, self._lane)  # keeps the times: the graph reads them there

    @torch.inference_mode()
    def forward_chunk(
        self,
        mu: torch.Tensor,
        spks: torch.Tensor,
        cond: torch.Tensor,
        n_timesteps: int = 10,
        temperature: float = 1.0,
        cnn_cache: torch.Tensor | None = None,
        att_cache: torch.Tensor | None = None,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """See upstream: new mel frames, and the caches after them."""
        given = {"mu": mu, "spks": spks, "cond": cond, "cnn_cache": cnn_cache}
        frames = 0 if att_cache is None else att_cache.shape[4]
        captured = self._steps.get((frames, n_timesteps))
        if captured is None or mu.shape[2] != CHUNK_FRAMES or temperature != 1.0:
            return self._upstream(
                **given, n_timesteps=n_timesteps, temperature=temperature, att_cache=att_cache
            )
        inputs, step = captured
        for name, value in {**given, "att_cache": att_cache}.items():
            inputs[name].copy_(value)
        made = step()[0]
        buffers = self._decoder.cnn_cache_buffer, self._decoder.att_cache_buffer
        return made, buffers[0], buffers[1][:, :, :, :, : frames + CHUNK_FRAMES, :]


def _times_of(embedder: Any, run: Callable[[], Any]) -> list[torch.Tensor]:
    """Embeddings of the solver's times, as a plain run makes them; they are the same in every run.

    Upstream makes them on the CPU, which cannot be captured.
    """
    made: list[torch.Tensor] = []
    hook = embedder.register_forward_hook(lambda _, args, out: made.append(out.clone()))
    try:
        run()
    finally:
        hook.remove()
    return made


@contextlib.contextmanager
def _known_times(embedder: Any, times: Sequence[torch.Tensor]) -> Iterator[None]:
    """Let one run of the solver take its times' embeddings from `times`."""
    each = iter(times)
    embedder.forward = lambda _: next(each)
    try:
        yield
    finally:
        del embedder.forward
