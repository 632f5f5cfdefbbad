"""The steps of which a second of ROMA is made, and what any implementation of them promises.

`hfd.models.roma.steps_eager` runs upstream's modules as they are; `hfd.models.roma.steps_graphs`
runs the same modules on static shapes inside CUDA graphs. Both hold the state of one file: the
thinker's cache, the talker's cache and the speech that is being made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol

import numpy as np
import torch

from hfd.models.graphs.sampling import Sampling
from hfd.models.roma.checkpoint import Parts
from hfd.models.roma.settings import Settings
from hfd.models.roma.unit import Grid

HOP = 480
"""Samples per code at 24 kHz: one code is two mel frames of 240 samples."""
FRAMES_PER_CODE = 2


@dataclass(frozen=True)
class Thought:
    """What the thinker made of a run of tokens.

    Attributes:
        hidden: states after the last norm, [tokens, hidden].
        layers: states of the speak head's layers at the last token, [layers, hidden].
        token: greedy next token, int64 scalar tensor (on the device until somebody reads it).
    """

    hidden: torch.Tensor
    layers: torch.Tensor
    token: torch.Tensor


@dataclass(frozen=True)
class Sound:
    """Samples that are being made.

    Attributes:
        wave: float32 on the CPU; valid once `is_ready`.
        event: what tells that the GPU has written it, or None where it waits for nothing.
    """

    wave: torch.Tensor
    event: torch.cuda.Event | None = None

    def is_ready(self) -> bool:
        return self.event is None or self.event.query()

    def samples(self) -> np.ndarray:
        """The samples; waits for them."""
        if self.event is not None:
            self.event.synchronize()
        return self.wave.numpy()


class Steps(Protocol):
    """One implementation of all steps. Tensors are on the model's device unless said otherwise."""

    acceleration: str

    @property
    def slots(self) -> int | None:
        """Tokens of context that the caches hold; None where they grow."""

    def warm_up(self) -> None:
        """Do everything that is slow once (capture, compile, first calls)."""

    def begin(self, grid: Grid) -> None:
        """Forget the last file; get ready for one whose video frames become `grid`."""

    def embed(self, ids: list[int]) -> torch.Tensor:
        """Text embeddings [len(ids), hidden]."""

    def shrink(self, frames: Sequence[np.ndarray]) -> torch.Tensor:
        """A second's two RGB video frames as `hfd.models.roma.unit.resize_all` gives them."""

    def see(self, patches: torch.Tensor, grid: Grid) -> torch.Tensor:
        """Vision tokens [grid.tokens, hidden] of the `patches` of `hfd.models.roma.unit`."""

    def hear(self, mel: torch.Tensor) -> torch.Tensor:
        """Audio tokens [25, hidden] of one second's log-mel frames [128, 100]."""

    def think(self, embeds: torch.Tensor, positions: torch.Tensor) -> Thought:
        """Feed the thinker `embeds` [tokens, hidden] at `positions` (CPU, [3, tokens])."""

    def read_context(self, states: torch.Tensor, positions: torch.Tensor) -> None:
        """Feed the talker the thinker's `states` [tokens, hidden] of what was said and seen."""

    def start_speech(self, states: torch.Tensor, position: int, draws: torch.Tensor) -> None:
        """Begin a run of codes after the context, and launch its first step.

        Args:
            states: the talker's two opening inputs, [2, hidden], without their codec parts.
            position: position id of the first of them.
            draws: one number in [0, 1) per code (CPU), the only randomness of the run.
        """

    def next_code(self, state: torch.Tensor) -> None:
        """Launch the step after the last launched one, with the text `state` [hidden]."""

    def read_code(self) -> int:
        """The code of the oldest launched step that has not been read; waits for it."""

    def end_speech(self) -> None:
        """Forget the run: the talker's cache is the context again."""

    def make_mel(self, codes: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """Mel frames [2 * codes, 80] of `codes` (CPU, int64) from `noise` (CPU, same shape)."""

    def make_wave(self, mel: torch.Tensor) -> torch.Tensor:
        """Samples [240 * frames] in [-1, 1]."""

    def start_sound(self, codes: torch.Tensor, noise: torch.Tensor) -> Sound:
        """Begin to make the samples of `codes`: mel, then wave, beside other steps if possible."""

    def wait(self) -> None:
        """Wait for all that was launched: what a GPU still does belongs to the step's time."""


def make_sampling(settings: Settings) -> Sampling:
    """How a code is drawn: upstream's processors in their order."""
    return Sampling(
        settings.temperature, settings.top_k, settings.top_p, settings.repetition_penalty
    )


def code_masks(parts: Parts) -> tuple[torch.Tensor, torch.Tensor]:
    """(seen, banned) at the start of a run, bool [codec vocabulary] each.

    Upstream's penalty covers the ids of the talker's prompt (mask, pad, bos). Banned are bos, as
    upstream, and every id above the vocoder's table, on which upstream would fail.
    """
    talker = parts.model.talker
    size = talker.config.vocab_size
    seen = torch.zeros(size, dtype=torch.bool, device=parts.device)
    seen[[talker.codec_mask_token, talker.codec_pad_token, talker.codec_bos_token]] = True
    last = parts.model.token2wav.code2wav_dit_model.config.num_embeds
    banned = torch.arange(size, device=parts.device) > last
    banned[[talker.codec_pad_token, talker.codec_eos_token]] = False
    banned[talker.codec_bos_token] = True
    return seen, banned


def solver_times(num_steps: int) -> torch.Tensor:
    """Times at which the flow is evaluated, float32 [num_steps], with upstream's sway of -1."""
    times = torch.linspace(0, 1, num_steps)
    return times - (torch.cos(torch.pi / 2 * times) - 1 + times)


def solve_flow(velocity, start: torch.Tensor, times: torch.Tensor) -> torch.Tensor:
    """Integrate ``velocity(time, state)`` from `start` over `times` (Runge-Kutta, 3/8 rule)."""
    state = start
    for begin, end in pairwise(times):
        step = end - begin
        k1 = velocity(begin, state)
        k2 = velocity(begin + step * (1 / 3), state + step * k1 * (1 / 3))
        k3 = velocity(begin + step * (2 / 3), state + step * (k2 - k1 * (1 / 3)))
        k4 = velocity(end, state + step * (k1 - k2 + k3))
        state = state + (k1 + 3 * (k2 + k3) + k4) * step / 8
    return state
