"""Qwen3-TTS as a `Voice`: stock qwen-tts weights and modules, our own loop around them.

The loop is the model's own streaming prompt (text beside speech, one text token a frame) with the
text side left open. Frame n needs: the talker's last hidden state and its first code; 15 passes of
the code predictor give the other codes; their embeddings plus the next text token drive the talker
to frame n + 1.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from hfd.models.graphs.capture import Lane, Step
from hfd.models.graphs.sampling import Sampling
from hfd.models.tts.codec import WindowDecoder
from hfd.models.tts.speech import END, PAD, Manner
from hfd.models.tts.steps import Decoder

ROLE = "<|im_start|>assistant\n"
CONTROL_CODES = 1024
"""The last ids of the talker's vocabulary are no sound; all but end-of-speech are never drawn."""
LEAST_CODES = 2
"""End-of-speech is not drawn before this many codes, as in the model's own generate."""


def make_sampling(config: dict[str, Any], prefix: str = "") -> Sampling:
    """How codes are drawn, from generation_config.json; what it leaves out is the model's own.

    Args:
        config: the file's content.
        prefix: ``subtalker_`` for the code predictor, which has no repetition penalty.

    Raises:
        ValueError: a setting that is not supported.
    """
    if config.get(f"{prefix}top_p", 1.0) != 1.0:
        raise ValueError(f"{prefix}top_p other than 1.0 is not supported")
    sample = config.get(f"{prefix}dosample" if prefix else "do_sample", True)
    return Sampling(
        temperature=config.get(f"{prefix}temperature", 0.9) if sample else 0.0,
        top_k=config.get(f"{prefix}top_k", 50),
        repetition_penalty=1.0 if prefix else config.get("repetition_penalty", 1.05),
    )


class QwenVoice:
    """One talker; see `hfd.models.tts.speech.Voice` for what each method promises."""

    def __init__(
        self, model: Any, tokenizer: Any, *, captured: bool, max_frames: int = 2048
    ) -> None:
        """Take over a loaded ``Qwen3TTSForConditionalGeneration``.

        Args:
            captured: record the steps as CUDA graphs (CUDA only).
            max_frames: frames of one talker session; sets the size of the key-value cache.
        """
        self.max_frames = max_frames
        self._config = model.config
        self._talker = model.talker
        self._predictor = model.talker.code_predictor
        self._tokenizer = tokenizer
        self.text_vocabulary = self._talker.model.text_embedding.num_embeddings
        self._sampling = make_sampling(model.generate_config)
        self._sub_sampling = make_sampling(model.generate_config, "subtalker_")
        lane = Lane.make(self._talker.codec_head.weight.device) if captured else None
        with torch.inference_mode():
            self._build(lane)
            self._codec = WindowDecoder(model.speech_tokenizer.model.decoder, lane)

    def _build(self, lane: Lane | None) -> None:
        """Make every buffer once; the steps read and write nothing else."""
        config = self._talker.config
        self._groups = config.num_code_groups
        weight = self._talker.codec_head.weight
        self._device, self._dtype = weight.device, weight.dtype
        integers = {"dtype": torch.long, "device": self._device}
        floats = {"dtype": torch.float32, "device": self._device}
        prompt = 16  # the longest prompt has 10 positions
        self._talk = Decoder(self._talker.model, prompt + self.max_frames, rope_axes=3)
        self._guess = Decoder(self._predictor.model, self._groups, rope_axes=1)
        self._hidden = torch.zeros(1, 1, config.hidden_size, dtype=self._dtype, device=self._device)
        self._sum = torch.zeros_like(self._hidden)
        self._code = torch.zeros(1, **integers)  # first code of the frame to come
        self._codes = torch.zeros(self._groups, **integers)
        self._side = torch.zeros(1, **integers)
        self._position = torch.zeros(1, **integers)
        self._places = torch.arange(self._groups, **integers)
        self._may_end = torch.zeros(1, dtype=torch.bool, device=self._device)
        self._seen = torch.zeros(config.vocab_size, dtype=torch.bool, device=self._device)
        self._never = torch.zeros(config.vocab_size, dtype=torch.bool, device=self._device)
        self._never[-CONTROL_CODES:] = True
        self._end_id = config.codec_eos_token_id
        self._never[self._end_id] = False
        self._is_end = torch.zeros_like(self._never)
        self._is_end[self._end_id] = True
        self._draws = torch.zeros(self._groups, **floats)  # of the first code and the others
        self._complete = Step(self._complete_codes, lane, [self._codes, self._sum])
        self._step = Step(
            self._talker_step, lane, [self._code, self._seen, self._hidden, self._position]
        )

    # -- Voice -------------------------------------------------------------------------------

    def tokens(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False)

    @torch.inference_mode()
    def begin(self, token: int, manner: Manner) -> None:
        self._random = torch.Generator().manual_seed(manner.seed)
        self._drawn = 0
        self._seen.zero_()
        self._codec.reset()
        prompt = self._prompt(token, manner)
        positions = torch.arange(prompt.shape[1], device=self._device)
        hidden = self._talk(prompt, positions)
        self._position.fill_(prompt.shape[1])
        self._draw_code(hidden[:, -1:], may_end=False)

    @torch.inference_mode()
    def frame(self) -> None:
        self._draws[1:] = torch.rand(self._groups - 1, generator=self._random)
        self._complete()
        self._codec.add(self._codes)

    @torch.inference_mode()
    def advance(self, side: int, may_end: bool) -> bool:
        special = {PAD: self._config.tts_pad_token_id, END: self._config.tts_eos_token_id}
        self._side.fill_(special.get(side, side))
        self._may_end.fill_(may_end and self._drawn >= LEAST_CODES)
        self._draws[:1] = torch.rand(1, generator=self._random)
        self._step()
        self._drawn += 1
        return self._code.item() == self._end_id

    @torch.inference_mode()
    def pcm(self, frames: int) -> np.ndarray:
        return self._codec.pcm(frames)

    # -- steps: fixed buffers only -----------------------------------------------------------

    def _complete_codes(self) -> None:
        """From hidden state and first code to all codes of the frame and their embeddings' sum."""
        model, heads = self._predictor.model, self._predictor.lm_head
        embedded = self._talker.model.codec_embedding(self._code)[None]  # [1, 1, size]
        self._codes[:1] = self._code
        total = embedded
        given, positions = torch.cat((self._hidden, embedded), dim=1), self._places[:2]
        for group in range(1, self._groups):
            projected = self._predictor.small_to_mtp_projection(given)
            hidden = self._guess(projected, positions)
            logits = heads[group - 1](hidden[:, -1])
            code = self._sub_sampling.pick(logits.float(), self._draws[group : group + 1])
            self._codes[group : group + 1] = code
            given = model.codec_embedding[group - 1](code)[None]
            positions = self._places[group + 1 : group + 2]
            total = total + given
        self._sum.copy_(total)

    def _talker_step(self) -> None:
        """From the frame's codes and the text side to the next hidden state and first code."""
        given = self._sum + self._text(self._side)
        self._next_code(self._talk(given, self._position))
        self._position += 1

    def _next_code(self, hidden: torch.Tensor) -> None:
        """Draw the first code of the next frame, with the model's own rules of what may come."""
        logits = self._talker.codec_head(hidden)[:, -1].float()
        banned = self._never | (self._is_end & ~self._may_end)
        self._code.copy_(self._sampling.pick(logits, self._draws[:1], self._seen, banned))
        self._seen.index_fill_(0, self._code, True)
        self._hidden.copy_(hidden)

    # -- prompt ------------------------------------------------------------------------------

    def _text(self, ids: torch.Tensor) -> torch.Tensor:
        """Text tokens [n] as the talker sees them: [1, n, size]."""
        return self._talker.text_projection(self._talker.model.text_embedding(ids))[None]

    def _prompt(self, token: int, manner: Manner) -> torch.Tensor:
        """The model's own streaming prompt up to the first text token: [1, 9 or 10, size]."""
        config, talker = self._config, self._talker.config
        language = self._language_id(manner)
        control = [talker.codec_nothink_id if language is None else talker.codec_think_id]
        control.append(talker.codec_think_bos_id)
        control += [] if language is None else [language]
        control += [talker.codec_think_eos_id, talker.spk_id[manner.speaker]]
        control += [talker.codec_pad_id, talker.codec_bos_id]
        sides = [config.tts_pad_token_id] * (len(control) - 2) + [config.tts_bos_token_id, token]
        role = self._tokenizer.encode(ROLE, add_special_tokens=False)
        codes = self._talker.model.codec_embedding(self._ids(control))[None]
        return torch.cat((self._text(self._ids(role)), self._text(self._ids(sides)) + codes), dim=1)

    def _language_id(self, manner: Manner) -> int | None:
        """The language's code; a speaker of a dialect speaks it where Chinese may be meant."""
        talker = self._talker.config
        dialect = (talker.spk_is_dialect or {}).get(manner.speaker)
        if dialect and manner.language in ("chinese", "auto"):
            return talker.codec_language_id[dialect]
        return None if manner.language == "auto" else talker.codec_language_id[manner.language]

    def _ids(self, ids: list[int]) -> torch.Tensor:
        return torch.tensor(ids, dtype=torch.long, device=self._device)

    def _draw_code(self, hidden: torch.Tensor, may_end: bool) -> None:
        self._may_end.fill_(may_end)
        self._draws[:1] = torch.rand(1, generator=self._random)
        self._next_code(hidden)
        self._drawn += 1
