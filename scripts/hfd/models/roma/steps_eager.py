"""The plain path: upstream's modules, called one after the other, with caches that grow."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np
import torch
from transformers.cache_utils import DynamicCache

from hfd.models.roma import unit as units
from hfd.models.roma.checkpoint import Parts
from hfd.models.roma.settings import Settings
from hfd.models.roma.steps import (
    Sound,
    Thought,
    code_masks,
    make_sampling,
    solve_flow,
    solver_times,
)
from hfd.models.roma.unit import Grid


class EagerSteps:
    """`hfd.models.roma.steps.Steps` without any acceleration; the reference for the others."""

    acceleration = "eager"
    slots = None

    def __init__(self, parts: Parts, settings: Settings) -> None:
        self._parts = parts
        self._thinker = parts.model.thinker
        self._talker = parts.model.talker
        self._settings = settings
        self._sampling = make_sampling(settings)
        self._first_seen, self._banned = code_masks(parts)
        self._times = solver_times(settings.num_steps).to(parts.device)

    def warm_up(self) -> None:
        """Nothing to prepare."""

    def begin(self, grid: Grid) -> None:
        self._thinker_cache = DynamicCache()
        self._talker_cache = DynamicCache()
        self._codes: deque[torch.Tensor] = deque()

    def embed(self, ids: list[int]) -> torch.Tensor:
        return self._thinker.get_input_embeddings()(torch.tensor(ids, device=self._parts.device))

    def shrink(self, frames: Sequence[np.ndarray]) -> torch.Tensor:
        return units.resize_all(frames)

    def see(self, patches: torch.Tensor, grid: Grid) -> torch.Tensor:
        thw = torch.tensor([[1, 2 * grid.height, 2 * grid.width]], device=self._parts.device)
        found = self._thinker.get_video_features(patches.to(self._parts.device), thw)
        return found.pooler_output[0]

    def hear(self, mel: torch.Tensor) -> torch.Tensor:
        mel = mel.to(self._parts.device)[None]
        mask = torch.ones(1, mel.shape[-1], dtype=torch.long, device=self._parts.device)
        found = self._thinker.get_audio_features(mel, feature_attention_mask=mask)
        return found.last_hidden_state

    def think(self, embeds: torch.Tensor, positions: torch.Tensor) -> Thought:
        out = self._thinker.model(
            inputs_embeds=embeds[None],
            position_ids=positions[:, None].to(self._parts.device),
            past_key_values=self._thinker_cache,
            use_cache=True,
            output_hidden_states=True,
        )
        layers = [out.hidden_states[layer][0, -1] for layer in self._parts.head.layers]
        hidden = out.last_hidden_state[0]
        logits = self._thinker.lm_head(hidden[-1])
        return Thought(hidden, torch.stack(layers), logits.argmax())

    def read_context(self, states: torch.Tensor, positions: torch.Tensor) -> None:
        self._talk(states, positions)
        self._context = self._talker_cache.get_seq_length()

    def start_speech(self, states: torch.Tensor, position: int, draws: torch.Tensor) -> None:
        talker = self._talker
        ids = torch.tensor([talker.codec_pad_token, talker.codec_bos_token])
        opening = states + talker.get_input_embeddings()(ids.to(states.device))
        self._draws = deque(draws.to(self._parts.device))
        self._seen = self._first_seen.clone()
        self._position = position + 2
        positions = torch.tensor([position, position + 1]).expand(3, -1)
        self._pick(self._talk(opening, positions))

    def next_code(self, state: torch.Tensor) -> None:
        inputs = self._talker.get_input_embeddings()(self._last) + state
        positions = torch.full((3, 1), self._position)
        self._position += 1
        self._pick(self._talk(inputs[None], positions))

    def read_code(self) -> int:
        return int(self._codes.popleft())

    def end_speech(self) -> None:
        self._codes.clear()
        surplus = self._talker_cache.get_seq_length() - self._context
        self._talker_cache.crop(-surplus)

    def make_mel(self, codes: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        device, speaker = self._parts.device, self._parts.speaker
        codes, start = codes[None].to(device), noise[None].to(device)
        condition = speaker.condition[:, None].expand(-1, start.shape[1], -1)

        def velocity(time: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
            guided, free = self._parts.model.token2wav.code2wav_dit_model(
                hidden_states=state,
                condition_vector=speaker.reference_mel,
                speaker_embedding=condition,
                quantized_code=codes,
                time_step=time,
            ).chunk(2)
            return guided + (guided - free) * self._settings.guidance

        return solve_flow(velocity, start, self._times)[0]

    def make_wave(self, mel: torch.Tensor) -> torch.Tensor:
        return self._parts.model.token2wav.code2wav_bigvgan_model(mel.T[None]).reshape(-1)

    def start_sound(self, codes: torch.Tensor, noise: torch.Tensor) -> Sound:
        return Sound(self.make_wave(self.make_mel(codes, noise)))

    def wait(self) -> None:
        if self._parts.device.type == "cuda":
            torch.cuda.current_stream(self._parts.device).synchronize()

    def _talk(self, states: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """Feed the talker; the last hidden state [hidden]."""
        out = self._talker.model(
            inputs_embeds=self._talker.thinker_to_talker_proj(states)[None],
            position_ids=positions[:, None].to(self._parts.device),
            past_key_values=self._talker_cache,
            use_cache=True,
        )
        return out.last_hidden_state[0, -1]

    def _pick(self, hidden: torch.Tensor) -> None:
        logits = self._talker.codec_head(hidden).float()
        code = self._sampling.pick(logits, self._draws.popleft(), self._seen, self._banned)
        self._seen[code] = True
        self._last = code
        self._codes.append(code)
