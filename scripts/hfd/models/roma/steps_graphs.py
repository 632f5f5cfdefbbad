"""The accelerated path: upstream's modules on static shapes, captured once in CUDA graphs.

Text, units and context go through blocks of `BLOCK` tokens: what does not fill a block is padded at
its end, where causality hides it, and overwritten by the next block. The caches have room for the
longest file; attention runs over the smallest of `BUCKETS` that holds what is filled. Without
capture the same code runs step by step, which is how the tests compare it with the plain path.
"""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch

from hfd.models.graphs.capture import Lane, Step
from hfd.models.graphs.sampling import Sampling
from hfd.models.resize import find_plan, resize_exactly
from hfd.models.roma import encoders
from hfd.models.roma import unit as units
from hfd.models.roma.capacity import context_slots, most_positions, speech_slots
from hfd.models.roma.checkpoint import Parts
from hfd.models.roma.decoder import layer_numbers
from hfd.models.roma.gate import GATE
from hfd.models.roma.prompt import make_turns
from hfd.models.roma.reader import BLOCK, Reader, whole_blocks
from hfd.models.roma.settings import Settings
from hfd.models.roma.sound import SoundSteps
from hfd.models.roma.steps import (
    Sound,
    Thought,
    code_masks,
    make_sampling,
)
from hfd.models.roma.unit import AUDIO_TOKENS, Grid

FIRST_GRID = Grid(7, 12)
"""Grid of 16:9 video frames, captured while loading; others when a file with them is opened."""
HOST_CODES = 8


def say(what: str) -> None:
    """Tell the log how far warming up has come."""
    print(f"roma: {what}", file=sys.stderr, flush=True)


class GraphSteps:
    """`hfd.models.roma.steps.Steps` on static shapes.

    Args:
        parts: the loaded snapshot.
        settings: the runner's settings.
        capture: whether to use CUDA graphs; without, every step runs as it is.
        fused: whether kernels are made for this GPU, which takes a C compiler.
    """

    def __init__(
        self, parts: Parts, settings: Settings, capture: bool = True, fused: bool = False
    ) -> None:
        graphs = "graphs, fused kernels" if fused else "graphs"
        self.acceleration = graphs if capture else "eager"
        self._fused = fused
        self._parts = parts
        self._settings = settings
        self._thinker, self._talker = parts.model.thinker, parts.model.talker
        self._sampling: Sampling = make_sampling(settings)
        self._lane = Lane.make(parts.device) if capture else None
        self._side = Lane.make(parts.device, first=True) if capture else None
        """Where sound is made, beside everything else and before it: its kernels leave most of a
        GPU free, those of the language models fill it."""
        self._steps: dict[tuple, Step] = {}
        turns = make_turns(parts.tokenizer, settings.system_prompt)
        self.slots = context_slots(settings, turns, most_positions(parts.model.config))
        self._make_readers()
        self._make_speech()
        self._sound = SoundSteps(parts, settings, self._side, fused)

    def _make_readers(self) -> None:
        text = self._thinker.model
        numbers = layer_numbers(self._parts.head.layers, len(text.layers))

        def thought(states, kept, last) -> tuple[torch.Tensor, ...]:
            layers = torch.cat([kept[number][last] for number in numbers])
            return states, layers, self._thinker.lm_head(states[last])[0].argmax()

        def state(states, kept, last) -> torch.Tensor:
            return states[last]

        spoken = self.slots + speech_slots(self._settings)
        room, more = whole_blocks(self.slots), whole_blocks(spoken)
        self._think = Reader(text, thought, numbers, room, self._fused)
        self._talk = Reader(self._talker.model, state, (), more, self._fused)

    def _make_speech(self) -> None:
        device = self._parts.device
        self._first_seen, self._banned = code_masks(self._parts)
        self._seen = self._first_seen.clone()
        self._draws = torch.zeros(self._settings.max_codes + 8, device=device)
        self._number = torch.zeros(1, dtype=torch.long, device=device)
        self._code = torch.zeros((), dtype=torch.long, device=device)
        self._state = self._thinker.model.norm.weight.new_zeros(self._talker.config.embedding_size)
        pinned = device.type == "cuda"
        self._host = torch.zeros(HOST_CODES, dtype=torch.long, pin_memory=pinned)
        self._unread: deque[tuple[int, Any]] = deque()
        self._launched = 0

    def warm_up(self) -> None:
        """Capture everything that a file with 16:9 video frames needs."""
        if self._lane is None:
            return
        for reader, kind in ((self._think, "think"), (self._talk, "talk")):
            reader.check_kernels()
            for bucket in reader.buckets:
                self._block_step(kind, reader, BLOCK, bucket)
            say(f"{kind}: {len(reader.buckets)} sizes of context captured")
        for bucket in self._think.buckets:
            self._block_step("think", self._think, 1, self._think.bucket(1, bucket))
        for bucket in self._talk.buckets:
            self._code_step(self._talk.bucket(1, bucket))
        self._see_step(FIRST_GRID)
        self._hear_step()
        say("single tokens, codes and encoders captured")
        self._sound.warm_up()
        say("sound captured")
        torch.cuda.synchronize(self._lane.device)

    def begin(self, grid: Grid) -> None:
        self._see_step(grid)
        self._thought_slots = self._context_slots = self._talk_slots = 0
        self._unread.clear()

    def embed(self, ids: list[int]) -> torch.Tensor:
        return self._thinker.get_input_embeddings()(torch.tensor(ids, device=self._parts.device))

    # Encoders

    def _see_step(self, grid: Grid) -> tuple[torch.Tensor, Step]:
        def make() -> tuple[torch.Tensor, Step]:
            vision = encoders.Vision(self._thinker.visual, grid)
            weight = self._thinker.visual.patch_embed.proj.weight
            patches = weight.new_zeros(4 * grid.tokens, weight[0].numel())
            return patches, Step(lambda: vision(patches), self._lane)

        return self._once(("see", grid), make)

    def _hear_step(self) -> tuple[torch.Tensor, Step]:
        def make() -> tuple[torch.Tensor, Step]:
            tower = self._thinker.audio_tower
            mel = tower.conv1.weight.new_zeros(tower.num_mel_bins, 4 * AUDIO_TOKENS)
            return mel, Step(lambda: encoders.hear(tower, mel), self._lane)

        return self._once(("hear",), make)

    def shrink(self, frames: Sequence[np.ndarray]) -> torch.Tensor:
        height, width, _ = frames[0].shape
        plan = find_plan(width, height, *units.target_sizes(width, height))
        if plan is None:
            return units.resize_all(frames)
        there = [torch.from_numpy(frame).to(self._parts.device) for frame in frames]
        return resize_exactly(torch.stack(there), plan)

    def see(self, patches: torch.Tensor, grid: Grid) -> torch.Tensor:
        place, step = self._see_step(grid)
        place.copy_(patches)
        return step()

    def hear(self, mel: torch.Tensor) -> torch.Tensor:
        place, step = self._hear_step()
        place.copy_(mel)
        return step()

    # Language models

    def _block_step(self, kind: str, reader: Reader, tokens: int, bucket: int) -> Step:
        return self._once(
            (kind, tokens, bucket), lambda: Step(lambda: reader.step(tokens, bucket), self._lane)
        )

    def _read(self, kind: str, reader: Reader, embeds, positions, start: int) -> list[Any]:
        """Feed any number of tokens; the result of every block."""
        results = []
        for begin in range(0, embeds.shape[0], BLOCK):
            part = embeds[begin : begin + BLOCK]
            tokens = 1 if part.shape[0] == 1 and kind == "think" else BLOCK
            reader.fill(part, positions[:, begin : begin + BLOCK], start + begin)
            step = self._block_step(
                kind, reader, tokens, reader.bucket(tokens, start + begin + tokens)
            )
            results.append(step())
        return results

    def think(self, embeds: torch.Tensor, positions: torch.Tensor) -> Thought:
        results = self._read("think", self._think, embeds, positions, self._thought_slots)
        self._thought_slots += embeds.shape[0]
        hidden = torch.cat([result[0] for result in results[:-1]] + [results[-1][0]])
        _, layers, token = results[-1]
        return Thought(hidden[: embeds.shape[0]], layers, token)

    def read_context(self, states: torch.Tensor, positions: torch.Tensor) -> None:
        inputs = self._talker.thinker_to_talker_proj(states)
        self._read("talk", self._talk, inputs, positions, self._context_slots)
        self._context_slots += states.shape[0]

    # Speech

    def start_speech(self, states: torch.Tensor, position: int, draws: torch.Tensor) -> None:
        talker = self._talker
        ids = torch.tensor([talker.codec_pad_token, talker.codec_bos_token])
        opening = states + talker.get_input_embeddings()(ids.to(states.device))
        inputs = talker.thinker_to_talker_proj(opening)
        positions = torch.tensor([position, position + 1]).expand(3, -1)
        hidden = self._read("talk", self._talk, inputs, positions, self._context_slots)[-1]
        self._seen.copy_(self._first_seen)
        self._draws[: draws.shape[0]] = draws.to(self._draws.device)
        self._number.zero_()
        self._pick(hidden)
        self._talk_slots = self._context_slots + 2
        self._talk.start.fill_(self._talk_slots)
        self._talk.positions.fill_(position + 2)
        self._launch()

    def _pick(self, hidden: torch.Tensor) -> None:
        """Draw the next code from a state [1, hidden], on the device."""
        logits = self._talker.codec_head(hidden)[0].float()
        draw = self._draws[self._number][0]
        self._code.copy_(self._sampling.pick(logits, draw, self._seen, self._banned))
        self._seen.index_fill_(0, self._code.view(1), True)
        self._number += 1

    def _code_step(self, bucket: int) -> Step:
        def run() -> None:
            reader, talker = self._talk, self._talker
            inputs = talker.get_input_embeddings()(self._code) + self._state
            reader.embeds[:1] = talker.thinker_to_talker_proj(inputs)[None]
            reader.last.zero_()
            self._pick(reader.step(1, bucket))
            reader.start += 1
            reader.positions += 1

        state = (
            self._code, self._seen, self._number, self._talk.start, self._talk.positions,
            self._talk.embeds, self._talk.last,
        )  # fmt: skip
        return self._once(("code", bucket), lambda: Step(run, self._lane, state))

    def next_code(self, state: torch.Tensor) -> None:
        self._state.copy_(state)
        self._code_step(self._talk.bucket(1, self._talk_slots + 1))()
        self._talk_slots += 1
        self._launch()

    def _launch(self) -> None:
        """Send the code just drawn to the host, without waiting for it."""
        place = self._launched % HOST_CODES
        self._launched += 1
        self._host[place].copy_(self._code, non_blocking=True)
        event = None
        if self._parts.device.type == "cuda":
            event = torch.cuda.Event()
            event.record(torch.cuda.current_stream(self._parts.device))
        self._unread.append((place, event))

    def read_code(self) -> int:
        place, event = self._unread.popleft()
        if event is not None:
            event.synchronize()
        return int(self._host[place])

    def end_speech(self) -> None:
        self._unread.clear()

    def wait(self) -> None:
        if self._parts.device.type == "cuda":
            # Its own streams alone: another session may run beside this one.
            torch.cuda.current_stream(self._parts.device).synchronize()
        if self._side is not None:
            self._side.stream.synchronize()

    # Sound

    def make_mel(self, codes: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        return self._sound.make_mel(codes, noise)

    def make_wave(self, mel: torch.Tensor) -> torch.Tensor:
        return self._sound.make_wave(mel)

    def start_sound(self, codes: torch.Tensor, noise: torch.Tensor) -> Sound:
        return self._sound.start(codes, noise)

    # Capture

    def _once(self, key: tuple, make: Callable[[], Any]) -> Any:
        if key not in self._steps:
            with torch.no_grad(), nullcontext() if self._lane is None else GATE.alone():
                self._steps[key] = make()
        return self._steps[key]
