"""A double of MiniCPM-o's duplex object: upstream's calls and attributes, a script for the model.

It has upstream's habits, the bad ones too: `prepare` keeps the audio encoder's memory and the way
loudness is normalised, words before a ``<|listen|>`` are lost, failures are return values. Its
sound depends on everything that upstream's does, so that what is not reset can be heard.
``MODEL`` is the runner on top of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from hfd.duplex.model import Identity
from hfd.models.minicpmo.model import MiniCpmO
from hfd.models.minicpmo.session import Parts
from tests.tiny.minicpmo import IDS, SPECIAL

LISTEN, SPEAK, TURN_END = (IDS[f"<|{name}|>"] for name in ("listen", "speak", "turn_eos"))
CHUNK_END, UNIT_END, TTS_BOS = IDS["<|chunk_eos|>"], IDS["</unit>"], IDS["<|tts_bos|>"]
CODE_SAMPLES = 960
LOOK_AHEAD = 3
AUDIO_POSITIONS = 1500
POSITIONS = 40_960


class Tokenizer:
    """Bytes, and the special tokens of the duplex grammar."""

    def __init__(self, more: Sequence[str] = ()) -> None:
        names = [*SPECIAL, *more]
        self.added_tokens_decoder = {
            256 + n: SimpleNamespace(content=name, special=True) for n, name in enumerate(names)
        }

    def decode(self, ids: Sequence[int], skip_special_tokens: bool = False) -> str:
        data = b""
        for number in ids:
            if number < 256:
                data += bytes([number])
            elif not skip_special_tokens:
                data += self.added_tokens_decoder[number].content.encode()
        return data.decode("utf-8", errors="replace")


def spoken(text: str) -> list[int]:
    """Ids of a text."""
    return list(text.encode())


@dataclass
class Script:
    """What the model decides.

    Attributes:
        units: the ids that are decoded in each second, the decision first; listening after them.
        codes: speech codes of a speaking second.
        faults: seconds in which reading fails, with upstream's reason.
        context_step: tokens that a second adds to the context, besides what is decoded.
    """

    units: Sequence[Sequence[int]] = ()
    codes: int = 25
    faults: Mapping[int, str] = field(default_factory=dict)
    context_step: int = 145


class Duplex:
    """The double."""

    turn_eos_token_id = TURN_END

    def __init__(self, script: Script, tokenizer: Tokenizer | None = None) -> None:
        self.script = script
        self.tokenizer = tokenizer or Tokenizer()
        mel = SimpleNamespace(dynamic_log_norm=True, dynamic_range_db=8.0, log_floor_db=-10.0)
        self.processor = SimpleNamespace(audio_processor=mel)
        self.model = SimpleNamespace(audio_past_key_values=None, reset_session=self._reset_session)
        self.decoder = SimpleNamespace(get_cache_length=lambda: self._context)
        self.calls: list[str] = []
        self.random = np.random.default_rng(0)
        self._clear()

    def _clear(self) -> None:
        self._context = 0
        self._unit = 0
        self.total_ids: list[int] = []
        self.current_turn_ended = True
        self.tts_text_start_pos = 0
        self.token2wav_initialized = False
        self._withheld: list[int] = []

    def seed(self, number: int) -> None:
        self.random = np.random.default_rng(number)

    def _reset_session(self, reset_token2wav_cache: bool = True) -> None:
        self.calls.append("reset_session")
        self.model.audio_past_key_values = None

    def prepare(
        self,
        prefix_system_prompt: str | None = None,
        ref_audio: np.ndarray | None = None,
        prompt_wav_path: str | None = None,
    ) -> str:
        self.calls.append("prepare")
        print("the vocoder prints here")
        self._clear()
        self._context = len(prefix_system_prompt or "") + 10 * len(ref_audio) // 16_000
        self.token2wav_initialized = bool(prompt_wav_path)
        mel = self.processor.audio_processor
        self._colour = (mel.dynamic_log_norm, mel.dynamic_range_db, self._heard())
        return prefix_system_prompt or ""

    def _heard(self) -> int:
        cache = self.model.audio_past_key_values
        return 0 if cache is None else cache[0][0].shape[2]

    def streaming_prefill(
        self,
        audio_waveform: np.ndarray,
        frame_list: list[Any] | None = None,
        max_slice_nums: int | list[int] = 1,
    ) -> dict[str, Any]:
        self.calls.append("streaming_prefill")
        if self._unit in self.script.faults:
            return {"success": False, "reason": self.script.faults[self._unit], "cost_all": 0.001}
        mel = self.processor.audio_processor
        mel.dynamic_log_norm = self._unit >= 5
        heard = self._heard() + 50
        heard = 50 if heard >= AUDIO_POSITIONS else heard
        self.model.audio_past_key_values = [[np.zeros((1, 1, heard, 1))]]
        self._context += self.script.context_step
        self._level = float(np.abs(audio_waveform).mean())
        self._unit += 1
        return {"success": True, "reason": "", "cost_all": 0.001}

    def streaming_generate(
        self,
        prompt_wav_path: str | None = None,
        max_new_speak_tokens_per_chunk: int = 20,
        decode_mode: str = "sampling",
        temperature: float = 0.7,
        top_k: int = 100,
        top_p: float = 0.8,
        text_repetition_penalty: float = 1.05,
        text_repetition_window_size: int = 512,
    ) -> dict[str, Any]:
        self.calls.append("streaming_generate")
        number = self._unit - 1
        wanted = self.script.units[number] if number < len(self.script.units) else [LISTEN]
        ids, listening = self._decode(list(wanted), max_new_speak_tokens_per_chunk - 1)
        words = [n for n in ids[1:] if n not in (LISTEN, CHUNK_END)]
        self.total_ids += [*ids, UNIT_END]
        self._context += len(ids) + 1
        text_end = bool(words) and words[-1] == TURN_END
        answer = {
            "is_listen": listening,
            "text": "" if listening else self.tokenizer.decode(words, skip_special_tokens=True),
            "audio_waveform": np.zeros(24_000, np.float32),
            "end_of_turn": False,
            "n_tokens": len(words),
            "n_tts_tokens": 0,
            "cost_llm": 0.001,
            "cost_all": 0.002,
        }
        if listening:
            return answer
        codes = [int(n) for n in self.random.integers(0, 6561, self.script.codes)]
        self.tts_text_start_pos = 0 if text_end else self.tts_text_start_pos + len(words) + 26
        wave = self._generate_waveform_from_tokens(codes, prompt_wav_path, text_end)
        return answer | {
            "audio_waveform": wave,
            "end_of_turn": text_end,
            "n_tts_tokens": self.script.codes,
        }

    def _decode(self, wanted: list[int], limit: int) -> tuple[list[int], bool]:
        """The script's ids as upstream's loop takes them, and whether it ends in listening."""
        ids: list[int] = []
        for number in wanted[:limit]:
            if number == LISTEN and not self.current_turn_ended:
                number = TTS_BOS
            ids.append(number)
            if number in (LISTEN, CHUNK_END):
                return ids, number == LISTEN
            self.current_turn_ended = number == TURN_END
        return [*ids, CHUNK_END], False

    def _generate_waveform_from_tokens(
        self, codes: Sequence[int], prompt_wav_path: str | None, is_last_chunk: bool = False
    ) -> np.ndarray | None:
        self._withheld += codes
        keep = 0 if is_last_chunk else LOOK_AHEAD
        sounded = self._withheld[: len(self._withheld) - keep]
        self._withheld = self._withheld[len(sounded) :]
        if not sounded:
            return None
        key = hash((*self._colour, round(self._level, 6))) % 2**32
        noise = np.random.default_rng([key, *sounded]).standard_normal(len(sounded) * CODE_SAMPLES)
        return (noise * 0.05).astype(np.float32)


def usual_units() -> list[list[int]]:
    """Two seconds of listening, a turn of three seconds, a second of listening, a short turn."""
    return [
        [LISTEN],
        [LISTEN],
        [SPEAK, *spoken("Two people ")],
        [SPEAK, *spoken("are on "), *spoken("红")[:2]],
        [SPEAK, *spoken("红")[2:], *spoken("色 chairs."), TURN_END],
        [LISTEN],
        [SPEAK, *spoken("Yes."), TURN_END],
    ]


class DoubleMiniCpmO(MiniCpmO):
    """The runner over the double; nothing is loaded."""

    script: Script | None = None
    more_tokens: Sequence[str] = ()

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__({"model_path": "double", **settings})

    def load_parts(self) -> Parts:
        duplex = Duplex(self.script or Script(usual_units()), Tokenizer(self.more_tokens))
        return Parts(
            duplex=duplex,
            voice=np.zeros(32_000, np.float32),
            voice_path="voice.wav",
            seed=duplex.seed,
            no_codes=list,
            positions=POSITIONS,
            talker_positions=4096,
            identity=Identity("double of MiniCPM-o 4.5", None),
        )


MODEL = DoubleMiniCpmO
