"""Qwen3-TTS as a `Voice`: stock qwen-tts weights and modules, our own loop around them.

The loop is the model's own streaming prompt (text beside speech, one text token a frame) with the
text side left open. Frame n needs: the talker's last hidden state and its first code; 15 passes of
the code predictor give the other codes; their embeddings plus the next text token drive the talker
to frame n + 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch

from hfd.models.graphs.capture import Lane, Step
from hfd.models.graphs.sampling import Sampling
from hfd.models.tts.codec import StreamDecoder
from hfd.models.tts.speech import END, PAD, Manner, Move
from hfd.models.tts.steps import Decoder

ROLE = "<|im_start|>assistant\n"
CONTROL_CODES = 1024
"""The last ids of the talker's vocabulary are no sound; all but end-of-speech are never drawn."""
PROMPT = 16
"""Positions kept for a prompt, which has 9 or 10."""
READS = (256, 512, 1024)
"""How many slots of the cache a talker step may read: as few as hold what is spoken."""
ROWS = 8
"""A GPU's batch has a multiple of so many rows: sums of another batch size are rounded otherwise,
and what an utterance says would depend on how many others may speak. The rows cost little."""
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
    """One talker with several slots; see `hfd.models.tts.speech.Voice` for what is promised."""

    def __init__(
        self,
        model: Any,
        tokenizer: Any,
        *,
        captured: bool,
        slots: int = 1,
        max_frames: int = 2048,
    ) -> None:
        """Take over a loaded ``Qwen3TTSForConditionalGeneration``.

        Args:
            model: the model, on its device.
            tokenizer: its text tokenizer.
            captured: record the steps as CUDA graphs (CUDA only).
            slots: utterances spoken at a time.
            max_frames: frames of one talker session; sets the size of the key-value cache.
        """
        self.slots = slots
        self.max_frames = max_frames
        self._config = model.config
        self._talker = model.talker
        self._predictor = model.talker.code_predictor
        self._tokenizer = tokenizer
        self.text_vocabulary = self._talker.model.text_embedding.num_embeddings
        self._sampling = make_sampling(model.generate_config)
        self._sub_sampling = make_sampling(model.generate_config, "subtalker_")
        self._random: dict[int, torch.Generator] = {}
        self._at, self._drawn = [0] * slots, [0] * slots  # positions and codes of each slot
        device = self._talker.codec_head.weight.device
        self._rows = slots if device.type == "cpu" else -(-slots // ROWS) * ROWS
        lane = Lane.make(device) if captured else None
        with torch.inference_mode():
            self._make_buffers(device)
            self._make_steps(lane)
            codec = model.speech_tokenizer.model.decoder
            self._codec = StreamDecoder(codec, slots, max_frames, lane)

    def _make_buffers(self, device: torch.device) -> None:
        """Make every buffer once; the steps read and write nothing else."""
        config = self._talker.config
        self._groups, vocabulary = config.num_code_groups, config.vocab_size
        integers = {"dtype": torch.long, "device": device}
        flags = {"dtype": torch.bool, "device": device}
        weight = self._talker.codec_head.weight
        self._hidden = weight.new_zeros(self._rows, 1, config.hidden_size)
        self._sum = torch.zeros_like(self._hidden)
        self._code = torch.zeros(self._rows, **integers)  # first code of the frame to come
        self._codes = torch.zeros(self._rows, self._groups, **integers)
        self._position = torch.zeros(self._rows, **integers)
        self._seen = torch.zeros(self._rows, vocabulary, **flags)
        # What the host sets for each frame.
        self._orders = torch.zeros(4, self._rows, **integers)  # moves, may end, makes, text side
        self._draws = torch.zeros(self._rows, self._groups, device=device)
        self._drawn_numbers = torch.zeros(self._rows, self._groups)
        # What the host sets for an opening: the prompt, and where it goes.
        self._row = torch.zeros(1, **integers)
        self._last = torch.zeros(1, **integers)
        self._prompt_text, self._prompt_code = torch.zeros(2, PROMPT, **integers)
        self._has_code = torch.zeros(PROMPT, 1, **flags)
        # Constants.
        self._ids = torch.arange(max(vocabulary, PROMPT), **integers)
        self._end_id = config.codec_eos_token_id
        self._is_end = self._ids[:vocabulary] == self._end_id
        self._never = (self._ids[:vocabulary] >= vocabulary - CONTROL_CODES) & ~self._is_end

    def _make_steps(self, lane: Lane | None) -> None:
        length = PROMPT + self.max_frames
        talker, predictor = self._talker.model, self._predictor.model
        self._talk = Decoder(talker, length, 3, self._rows)
        self._open_talk = Decoder(talker, PROMPT, 3, 1)
        self._open_place = self._open_talk.place(self._ids[None, :PROMPT])
        self._guess = Decoder(predictor, self._groups, 1, self._rows)
        # The first pass of a frame has two tokens, each of the others one.
        spans = [(0, 2), *((place, place + 1) for place in range(2, self._groups))]
        self._guess_places = [
            self._guess.place(self._ids[start:end].expand(self._rows, -1)) for start, end in spans
        ]
        state = [self._code, self._seen, self._hidden, self._position]
        self._opening = Step(self._open, lane, state)
        self._complete = Step(self._complete_codes, lane, [self._codes, self._sum])
        self._reads = [*(read for read in READS if read < length), length]
        self._advance = {
            read: Step(partial(self._talker_step, read), lane, state) for read in self._reads
        }

    # -- Voice -------------------------------------------------------------------------------

    def tokens(self, text: str) -> list[int]:
        return self._tokenizer.encode(text, add_special_tokens=False)

    @torch.inference_mode()
    def begin(self, slot: int, token: int, manner: Manner) -> None:
        self._random[slot] = torch.Generator().manual_seed(manner.seed)
        self._draw([slot])
        self._drawn[slot] = 1
        self._codec.reset(slot)
        self._at[slot] = self._set_prompt(token, manner)
        self._row.fill_(slot)
        self._opening()

    @torch.inference_mode()
    def step(self, moves: Mapping[int, Move | None]) -> set[int]:
        orders = torch.zeros(4, self._rows, dtype=torch.long)
        orders[2, list(moves)] = 1
        going = {slot: move for slot, move in moves.items() if move is not None}
        for slot, move in going.items():
            may_end = move.may_end and self._drawn[slot] >= LEAST_CODES
            orders[[0, 1, 3], slot] = torch.tensor([1, int(may_end), self._side_id(move.side)])
            self._drawn[slot] += 1
        self._orders.copy_(orders)
        if going:
            self._draw(going)
            last = max(self._at[slot] for slot in going)
            self._advance[next(read for read in self._reads if read > last)]()
        self._complete()
        codes = self._codes.tolist()
        ended = {slot for slot in going if codes[slot][0] == self._end_id}
        for slot in going:
            self._at[slot] += 1
        for slot in moves.keys() - ended:
            self._codec.add(slot, codes[slot])
        return ended

    @torch.inference_mode()
    def pcm(self, slot: int, frames: int) -> np.ndarray:
        return self._codec.pcm(slot, frames)

    # -- steps: fixed buffers only -----------------------------------------------------------

    def _open(self) -> None:
        """From a prompt to the hidden state and first code of one row."""
        codes = self._talker.model.codec_embedding(self._prompt_code)
        given = self._text(self._prompt_text) + codes.masked_fill(~self._has_code, 0.0)
        states = self._open_talk(given[None], self._open_place)
        self._talk.cache.block[..., :PROMPT, :].index_copy_(
            1, self._row, self._open_talk.cache.block
        )
        hidden = states.index_select(1, self._last)
        draw = self._draws.index_select(0, self._row)[:, 0]
        code = self._sampling.pick(self._logits(hidden), draw, banned=self._never | self._is_end)
        self._hidden.index_copy_(0, self._row, hidden)
        self._code.index_copy_(0, self._row, code)
        self._position.index_copy_(0, self._row, self._last + 1)
        seen = self._ids[None, : self._seen.shape[1]] == code[:, None]
        self._seen.index_copy_(0, self._row, seen)

    def _talker_step(self, read: int) -> None:
        """From the frame's codes and the text side to the next hidden state and first code."""
        moves, may_end = self._orders[0].bool(), self._orders[1].bool()
        given = self._sum + self._text(self._orders[3])[:, None]
        hidden = self._talk(given, self._talk.place(self._position[:, None], read))
        banned = self._never | (self._is_end & ~may_end[:, None])
        draw = self._draws[:, 0]
        code = self._sampling.pick(self._logits(hidden), draw, self._seen, banned)
        self._code.copy_(torch.where(moves, code, self._code))
        self._hidden.copy_(torch.where(moves[:, None, None], hidden, self._hidden))
        drawn = self._ids[None, : self._seen.shape[1]] == code[:, None]
        self._seen.logical_or_(drawn & moves[:, None])
        self._position += moves

    def _complete_codes(self) -> None:
        """From hidden state and first code to all codes of the frame and their embeddings' sum."""
        model, heads = self._predictor.model, self._predictor.lm_head
        embedded = self._talker.model.codec_embedding(self._code)[:, None]  # [rows, 1, size]
        codes, total = [self._code], embedded
        given = torch.cat((self._hidden, embedded), dim=1)
        for group, place in enumerate(self._guess_places, 1):
            projected = self._predictor.small_to_mtp_projection(given)
            hidden = self._guess(projected, place)
            logits = heads[group - 1](hidden[:, -1]).float()
            code = self._sub_sampling.pick(logits, self._draws[:, group])
            codes.append(code)
            given = model.codec_embedding[group - 1](code)[:, None]
            total = total + given
        self._codes.copy_(torch.stack(codes, dim=1))
        self._sum.copy_(torch.where(self._orders[2].bool()[:, None, None], total, self._sum))

    def _logits(self, hidden: torch.Tensor) -> torch.Tensor:
        """Of the first code, float32 [rows, codes], from states [rows, 1, hidden]."""
        return self._talker.codec_head(hidden)[:, 0].float()

    def _text(self, ids: torch.Tensor) -> torch.Tensor:
        """Text tokens [n] as the talker sees them: [n, size]."""
        return self._talker.text_projection(self._talker.model.text_embedding(ids))

    # -- on the host -------------------------------------------------------------------------

    def _draw(self, slots: Iterable[int]) -> None:
        """Numbers in [0, 1) for the codes of each slot's frame, the same on every device."""
        for slot in slots:
            torch.rand(self._groups, generator=self._random[slot], out=self._drawn_numbers[slot])
        self._draws.copy_(self._drawn_numbers)

    def _side_id(self, side: int) -> int:
        special = {PAD: self._config.tts_pad_token_id, END: self._config.tts_eos_token_id}
        return special.get(side, side)

    def _set_prompt(self, token: int, manner: Manner) -> int:
        """Set the model's own streaming prompt up to the first text token; gives its length."""
        config, talker = self._config, self._talker.config
        language = self._language_id(manner)
        control = [talker.codec_nothink_id if language is None else talker.codec_think_id]
        control.append(talker.codec_think_bos_id)
        control += [] if language is None else [language]
        control += [talker.codec_think_eos_id, talker.spk_id[manner.speaker]]
        control += [talker.codec_pad_id, talker.codec_bos_id]
        sides = [config.tts_pad_token_id] * (len(control) - 2) + [config.tts_bos_token_id, token]
        role = self._tokenizer.encode(ROLE, add_special_tokens=False)
        length = len(role) + len(control)
        rest = [0] * (PROMPT - length)  # hidden by causality, and overwritten by the first frames
        self._prompt_text.copy_(torch.tensor([*role, *sides, *rest]))
        self._prompt_code.copy_(torch.tensor([*([0] * len(role)), *control, *rest]))
        has_code = [len(role) <= place < length for place in range(PROMPT)]
        self._has_code.copy_(torch.tensor(has_code)[:, None])
        self._last.fill_(length - 1)
        return length

    def _language_id(self, manner: Manner) -> int | None:
        """The language's code; a speaker of a dialect speaks it where Chinese may be meant."""
        talker = self._talker.config
        dialect = (talker.spk_is_dialect or {}).get(manner.speaker)
        if dialect and manner.language in ("chinese", "auto"):
            return talker.codec_language_id[dialect]
        return None if manner.language == "auto" else talker.codec_language_id[manner.language]
