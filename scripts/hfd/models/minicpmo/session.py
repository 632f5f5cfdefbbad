"""One duplex object, one sample after another: upstream's calls in upstream's order.

Upstream's `prepare` does not clear everything. What it leaves (the audio encoder's keys and values,
the way loudness is normalised) is reset here, so that a sample's result depends on nothing before
it. No torch is imported here: what needs it comes with `Parts`.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from PIL import Image

from hfd.duplex.model import Identity
from hfd.errors import HfdError
from hfd.models.minicpmo.settings import Settings
from hfd.models.minicpmo.upstream import MEL_STATE, cache_length, takes

PROMPT = "Streaming Omni Conversation."
"""The system prompt of the official omni sessions."""
TALKER_MARGIN = 96
"""Positions that one second can need at most: 20 text tokens, their end, 25 codes; and a rest."""


@dataclass(frozen=True)
class Parts:
    """A loaded model.

    Attributes:
        duplex: upstream's duplex object.
        voice: the voice, float32 mono at 16 kHz.
        voice_path: its file.
        seed: seeds every generator that upstream draws from.
        no_codes: makes an empty tensor of speech codes, shape [1, 0, 1].
        positions: of the language model.
        talker_positions: of the talker, for one turn.
        identity: what was loaded.
        look_ahead: prepares for images of these sizes and slices before a file begins, or None.
    """

    duplex: Any
    voice: np.ndarray
    voice_path: str
    seed: Callable[[int], None]
    no_codes: Callable[[], Any]
    positions: int
    talker_positions: int
    identity: Identity
    look_ahead: Callable[[Sequence[Image.Image], Any], None] | None = None


class Session:
    """The calls of one sample at a time; `begin` forgets the one before."""

    def __init__(self, parts: Parts, settings: Settings) -> None:
        self._parts = parts
        self._duplex = parts.duplex
        self._settings = settings
        mel = self._mel()
        self._mel_state = {name: getattr(mel, name) for name in MEL_STATE}
        self._generate = self._generate_arguments()
        self._read_ids = 0

    def _mel(self) -> Any:
        return self._duplex.processor.audio_processor

    def _generate_arguments(self) -> dict[str, Any]:
        """Arguments of every `streaming_generate`: its defaults are not `as_duplex`'s."""
        settings = self._settings
        arguments: dict[str, Any] = {
            "prompt_wav_path": self._parts.voice_path,
            "max_new_speak_tokens_per_chunk": settings.tokens_per_unit,
            "decode_mode": settings.decode,
            **settings.drawing,
        }
        if "length_penalty" in arguments and not takes(
            self._duplex.streaming_generate, "length_penalty"
        ):
            raise HfdError(
                f"is {settings.length_penalty}, but this snapshot's streaming_generate takes"
                " no length_penalty",
                field="settings.length_penalty",
                remedy="Write null: the snapshot's code then does what it does by itself",
            )
        return arguments

    @property
    def arguments(self) -> dict[str, Any]:
        """What every `streaming_generate` is called with, but the voice's path."""
        return {k: v for k, v in self._generate.items() if k != "prompt_wav_path"}

    def begin(self, seed: int) -> int:
        """Forget the sample before and read the prompt.

        Returns:
            Tokens of the prompt.
        """
        duplex = self._duplex
        duplex.model.reset_session(reset_token2wav_cache=True)
        for name, value in self._mel_state.items():
            setattr(self._mel(), name, value)
        self._parts.seed(seed)
        with contextlib.redirect_stdout(sys.stderr):  # the vocoder prints what it was given
            self._prepare()
        self._read_ids = len(duplex.total_ids)
        if not duplex.token2wav_initialized:
            raise HfdError(
                "the vocoder has no cache after prepare, so nothing could be heard",
                field="settings.voice",
                remedy="Give a voice file that the vocoder can read",
            )
        if self.heard_positions:
            raise RuntimeError("the audio encoder still holds an earlier sample")
        return self.context_tokens

    def look_ahead(self, images: Sequence[Image.Image]) -> None:
        """Do what is slow once for images of these sizes, before the media starts."""
        slices = self._slices(len(images))
        if self._parts.look_ahead is not None and isinstance(slices, int):
            self._parts.look_ahead(images, slices)

    def _slices(self, count: int) -> int | list[int]:
        """Into how many slices each of so many images may be cut: only the first one."""
        most = self._settings.max_slice
        return most if most == 1 or count < 2 else [most, *[1] * (count - 1)]

    def _prepare(self) -> None:
        self._duplex.prepare(
            prefix_system_prompt=self._settings.system_prompt or PROMPT,
            ref_audio=self._parts.voice,
            prompt_wav_path=self._parts.voice_path,
        )

    def listen(self, pcm: np.ndarray, images: Sequence[Image.Image]) -> dict[str, Any]:
        """Read one second: float32 [16000] and at most two images.

        Returns:
            Upstream's record of the call, with its costs.
        """
        done = self._duplex.streaming_prefill(
            audio_waveform=pcm, frame_list=list(images), max_slice_nums=self._slices(len(images))
        )
        if not done["success"]:
            raise RuntimeError(
                f"streaming_prefill failed: {done.get('reason') or 'no reason given'}"
            )
        return done

    def answer(self) -> dict[str, Any]:
        """Let the model decide, speak or listen, and close the second.

        Returns:
            Upstream's record of the call.
        """
        limit = self._parts.talker_positions - TALKER_MARGIN
        if self._duplex.tts_text_start_pos > limit:
            raise RuntimeError(
                f"one turn has used {self._duplex.tts_text_start_pos} of the talker's"
                f" {self._parts.talker_positions} positions; speech is never cut to go on"
            )
        done = self._duplex.streaming_generate(**self._generate)
        if hasattr(self._duplex, "finalize_unit"):
            self._duplex.finalize_unit()
        return done

    def new_ids(self) -> list[int]:
        """Ids that were decoded since the last call, the unit's decision first."""
        ids = self._duplex.total_ids[self._read_ids :]
        self._read_ids = len(self._duplex.total_ids)
        return list(ids)

    def flush(self) -> np.ndarray | None:
        """Sound of the codes that the vocoder withholds for its look-ahead, float32 at 24 kHz."""
        return self._duplex._generate_waveform_from_tokens(
            self._parts.no_codes(), self._parts.voice_path, True
        )

    @property
    def context_tokens(self) -> int:
        """Positions that the language model has read."""
        return int(self._duplex.decoder.get_cache_length())

    @property
    def heard_positions(self) -> int:
        """Positions that the audio encoder remembers; upstream empties it after about 29 s."""
        return cache_length(self._duplex.model.audio_past_key_values)

    @property
    def turn_is_open(self) -> bool:
        """Whether the model has begun to speak and not ended its turn."""
        return not self._duplex.current_turn_ended
