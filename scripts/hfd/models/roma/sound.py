"""Codes to samples as two launches per window: the whole solver in one graph, the wave in another.

A window brings one piece of page-locked memory and takes one away, so putting a sound on its stream
costs the CPU next to nothing, and the talker beside it never waits for the CPU.
"""

from __future__ import annotations

from functools import partial

import torch

from hfd.models.graphs.capture import WARM_UPS, Lane, Step
from hfd.models.roma import flow
from hfd.models.roma.checkpoint import Parts
from hfd.models.roma.settings import Settings
from hfd.models.roma.steps import FRAMES_PER_CODE, Sound, solver_times
from hfd.models.roma.vocoder import CHUNK_BLOCKS, LOOK_AHEAD, LOOK_BACK

WINDOW_BLOCKS = LOOK_BACK + max(CHUNK_BLOCKS) + LOOK_AHEAD
"""Longest window of the chunked vocoder, in blocks of the flow model."""


class SoundSteps:
    """Mel frames and samples of windows of codes, captured on a lane of their own.

    Args:
        parts: the loaded snapshot.
        settings: the runner's settings.
        lane: where to capture and run; None runs every step as it is.
        fused: whether what lies between matrix products is compiled.
    """

    def __init__(self, parts: Parts, settings: Settings, lane: Lane | None, fused: bool) -> None:
        wave = parts.model.token2wav
        self._dit, self._vocoder = wave.code2wav_dit_model, wave.code2wav_bigvgan_model
        self._device = parts.device
        self._guidance = settings.guidance
        self._lane = lane
        self._between = flow.Between.fused() if fused else flow.Between()
        self._block_codes = self._dit.block_size // FRAMES_PER_CODE
        self._solvers: dict[int, tuple[flow.Flow, Step]] = {}
        self._waves: dict[int, tuple[torch.Tensor, Step]] = {}
        times = solver_times(settings.num_steps).to(parts.device)
        with torch.no_grad():
            self._conditions = flow.Conditions(self._dit, parts.speaker, times)

    def warm_up(self) -> None:
        """Capture all windows."""
        for blocks in range(1, WINDOW_BLOCKS + 1):
            self._solver(blocks)
            self._wave(blocks)

    def make_mel(self, codes: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """See `hfd.models.roma.steps.Steps`."""
        blocks = -(-codes.shape[0] // self._block_codes)
        if blocks <= WINDOW_BLOCKS:
            solver, step = self._solver(blocks)
            solver.fill(codes, noise)
            return step()[: noise.shape[0]]
        solver = self._make_solver(blocks)
        solver.fill(codes, noise)
        return solver()[: noise.shape[0]]

    def make_wave(self, mel: torch.Tensor) -> torch.Tensor:
        """See `hfd.models.roma.steps.Steps`. A window that is not whole runs as it is.

        Its samples end where the mel ends, which changes the last of them.
        """
        blocks, rest = divmod(mel.shape[0], self._dit.block_size)
        if rest or blocks > WINDOW_BLOCKS:
            return flow.make_wave(self._vocoder, mel)
        place, step = self._wave(blocks)
        place.copy_(mel)
        return step()

    def start(self, codes: torch.Tensor, noise: torch.Tensor) -> Sound:
        """See `hfd.models.roma.steps.Steps.start_sound`."""
        if self._lane is None:
            return Sound(self.make_wave(self.make_mel(codes, noise)))
        with torch.cuda.stream(self._lane.stream):
            wave = self.make_wave(self.make_mel(codes, noise))
            host = torch.empty(wave.shape, pin_memory=True)
            host.copy_(wave, non_blocking=True)
            event = torch.cuda.Event()
            event.record(self._lane.stream)
        return Sound(host, event)

    def _warm_ups(self) -> int:
        """A solver is its kernels many times over: after the first window one run is enough."""
        return 1 if self._waves else WARM_UPS

    def _make_solver(self, blocks: int) -> flow.Flow:
        return flow.Flow(self._dit, blocks, self._guidance, self._conditions, self._between)

    @torch.no_grad()
    def _solver(self, blocks: int) -> tuple[flow.Flow, Step]:
        if blocks not in self._solvers:
            made = self._make_solver(blocks)
            self._solvers[blocks] = made, Step(made, self._lane, warm_ups=self._warm_ups())
        return self._solvers[blocks]

    @torch.no_grad()
    def _wave(self, blocks: int) -> tuple[torch.Tensor, Step]:
        if blocks not in self._waves:
            frames = blocks * self._dit.block_size
            mel = torch.zeros(frames, self._dit.mel_dim, device=self._device)
            run = partial(flow.make_wave, self._vocoder, mel)
            step = Step(run, self._lane, warm_ups=self._warm_ups())
            self._waves[blocks] = mel, step
        return self._waves[blocks]
