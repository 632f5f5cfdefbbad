"""One implementation of ROMA's steps with a context that grows, and seconds to feed it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import av
import numpy as np
import torch

from hfd.duplex.frames import with_frames_taken
from hfd.duplex.units import Frame, Unit
from hfd.models.roma import unit as units
from hfd.models.roma.acceleration import make_steps
from hfd.models.roma.checkpoint import Parts
from hfd.models.roma.settings import Settings, parse_settings
from hfd.models.roma.steps import Steps
from hfd.models.roma.vocoder import Vocoder, block_noise
from hfd.models.roma.voice import ALL, Markers, Voice

Second = tuple[torch.Tensor, units.Grid, torch.Tensor]
"""Patches, grid and log-mel of one second."""


class Bench:
    """One implementation of the steps, with a context that grows."""

    def __init__(self, parts: Parts, settings: Settings, kind: str) -> None:
        self.parts, self.kind = parts, kind
        self.settings = parse_settings({**vars(settings), "acceleration": kind})
        began = time.perf_counter()
        self.steps: Steps = make_steps(parts, self.settings)
        self.warm_up_s = time.perf_counter() - began
        self.unit = make_unit(0)
        self.second = prepare(parts, self.unit)
        self.steps.begin(self.second[1])
        self.position = 0

    def hear_and_see(self) -> None:
        """A whole listening second, the CPU's part too, in the runner's order."""
        heard = self.steps.hear(units.log_mel(self.parts.mel, self.unit.pcm))
        self.listen(heard, *units.patchify(self.steps.shrink(rgb(self.unit))))

    def listen(self, heard=None, patches=None, grid=None) -> None:
        """Read one second and give it to the talker."""
        self.steps.read_context(*self.read_unit(heard, patches, grid))

    def read_unit(self, heard=None, patches=None, grid=None) -> tuple[torch.Tensor, torch.Tensor]:
        """Read one second, up to the speak head's answer; the thinker's states and positions."""
        if heard is None:
            patches, grid, mel = self.second
            heard = self.steps.hear(mel)
        embeds, positions = self.unit_embeds(self.steps.see(patches, grid), heard)
        thought = self.think(embeds, positions)
        self.parts.head.probability(thought.layers)
        return thought.hidden, positions

    def unit_embeds(self, seen, heard) -> tuple[torch.Tensor, torch.Tensor]:
        marks = self.steps.embed([1, 2, 3, 4])
        embeds = torch.cat([marks[:2], seen, heard, marks[2:]])
        return embeds, units.unit_positions(self.position, self.second[1])

    def think(self, embeds: torch.Tensor, positions: torch.Tensor):
        self.position = int(positions[0, -1]) + 1
        return self.steps.think(embeds, positions)

    def token(self, token: int = 5):
        embeds = self.steps.embed([token])
        thought = self.think(embeds, units.text_positions(self.position, 1))
        return int(thought.token), thought.hidden[0] + embeds[0]

    def fill(self, seconds: int) -> None:
        """Listen until the context holds this many seconds."""
        while self.position < 27 * seconds:
            self.listen()

    def mark(self) -> None:
        """Remember how long the context is now."""
        self._marked = self.position, self._lengths()

    def rewind(self) -> None:
        """Make the context as long as it was at `mark`, so that every repeat reads the same."""
        self.position, lengths = self._marked
        steps = self.steps
        if self.kind == "graphs":
            steps._thought_slots, steps._context_slots = lengths
            return
        caches = steps._thinker_cache, steps._talker_cache
        for cache, length in zip(caches, lengths, strict=True):
            if cache.get_seq_length() > length:
                cache.crop(length - cache.get_seq_length())
        steps._context = lengths[1]

    def _lengths(self) -> tuple[int, int]:
        """Tokens in the thinker's and in the talker's cache."""
        steps = self.steps
        if self.kind == "graphs":
            return steps._thought_slots, steps._context_slots
        return steps._thinker_cache.get_seq_length(), steps._talker_cache.get_seq_length()

    def voice(self, play: Callable[[np.ndarray], None], codes: int) -> Voice:
        """A voice whose every piece has exactly `codes` codes."""
        talker = self.parts.model.talker
        marks = [self.parts.speaker.bos_token, talker.text_eos_token, talker.text_pad_token]
        return Voice(
            self.steps,
            Markers(*self.steps.embed(marks)),
            frozenset(),
            codes,
            lambda seed: Vocoder(self.steps, block_noise(seed, 24, 80), 12, whole=False),
            play,
            lambda facts: None,
            lambda last: None,
        )

    def speak(self, seconds: int, tokens: int) -> dict[str, float]:
        """One forced answer, `tokens` text tokens long; seconds of compute per spoken second."""
        first: list[float] = []
        voice = self.voice(lambda pcm: first.append(time.perf_counter()), 50 * seconds)
        piece = voice.begin_piece(self.position, 0.0, seed=1)
        synchronize()
        began = time.perf_counter()
        for _ in range(tokens):
            piece.texts.append(self.token()[1])
            voice.advance(ALL)
        voice.close_piece(piece)
        voice.advance(ALL)
        synchronize()
        return {
            "spoken_second_s": (time.perf_counter() - began) / seconds,
            "first_audio_s": first[0] - began,
        }


def make_unit(index: int, seed: int = 0) -> Unit:
    """One second of noise, 1280 x 720."""
    random = np.random.default_rng(seed + index)
    frames = tuple(
        Frame(
            5 * index + n,
            av.VideoFrame.from_ndarray(
                random.integers(0, 256, (720, 1280, 3), dtype=np.uint8)
            ).reformat(format="yuv420p"),
        )
        for n in range(5)
    )
    pcm = (0.1 * random.standard_normal(16_000)).astype(np.float32)
    unit = Unit(index, 16_000 * index, pcm, frames, 16_000, False)
    return next(with_frames_taken([unit], units.FRAME_RULE))


def at(unit: Unit, index: int, is_last: bool = False) -> Unit:
    """The same media at another second of the file."""
    frames = tuple(Frame(5 * index + n, frame.image) for n, frame in enumerate(unit.frames))
    return replace(unit, index=index, start=16_000 * index, frames=frames, is_last=is_last)


def prepare(parts: Parts, unit: Unit) -> Second:
    """What the models are given of a second, without a GPU."""
    patches, grid = units.patchify(units.resize_all(rgb(unit)))
    return patches, grid, units.log_mel(parts.mel, unit.pcm)


def rgb(unit: Unit) -> list[np.ndarray]:
    """A unit's two pictures, turned into RGB as if they had just been decoded.

    Copied first (about 0.2 ms), because a picture keeps what its first conversion has set up.
    """
    chosen = [(f.index, f.image.to_ndarray()) for f in units.two_frames(unit)]
    return [
        Frame(index, av.VideoFrame.from_ndarray(planes, format="yuv420p")).rgb
        for index, planes in chosen
    ]


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def median_ms(
    function: Callable[[], Any], repeats: int, after: Callable[[], Any] = synchronize
) -> float:
    """Median milliseconds of a call, the device's work included; two calls warm up.

    `after` each call, and not timed, something may be put back.
    """
    times = []
    for number in range(repeats + 2):
        synchronize()
        began = time.perf_counter()
        function()
        synchronize()
        if number >= 2:
            times.append(time.perf_counter() - began)
        after()
    return round(1000 * statistics.median(times), 3)
