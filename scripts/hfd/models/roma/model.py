"""ROMA as a full-duplex model: one second at a time, in two stages.

*Listen*: the second's frames and sound become one unit, the thinker reads it, the speak head says
how much the moment asks for an answer. *Speak*: the thinker writes at most 25 tokens, the talker
turns them into codes as they come, the vocoder turns codes into sound.
"""

from __future__ import annotations

import copy
import hashlib
import os
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np
import torch
import transformers

from hfd.duplex.events import Audio, Control, ControlKind, Metric, Text
from hfd.duplex.model import Capabilities, DuplexModel, Emit, Identity, SampleInfo
from hfd.duplex.units import Unit
from hfd.errors import HfdError
from hfd.models.graphs.capture import Lane
from hfd.models.roma import unit as units
from hfd.models.roma.acceleration import make_steps
from hfd.models.roma.capacity import Room, most_positions
from hfd.models.roma.checkpoint import Parts, load_snapshot, quiet_transformers
from hfd.models.roma.gate import GATE
from hfd.models.roma.prompt import TextStream, make_turns
from hfd.models.roma.settings import parse_settings
from hfd.models.roma.snapshot import find_snapshot, snapshot_problems
from hfd.models.roma.steps import FRAMES_PER_CODE, HOP, Steps, Thought
from hfd.models.roma.trigger import Decision, Trigger
from hfd.models.roma.vocoder import Vocoder, block_noise
from hfd.models.roma.voice import ALL, Markers, Piece, Voice

OUTPUT_RATE = 24_000
MOST_SESSIONS = 8
P = ParamSpec("P")
R = TypeVar("R")


def _in_session(
    method: Callable[Concatenate[Roma, P], R],
) -> Callable[Concatenate[Roma, P], R]:
    """`method` on the session's own stream, and never while another session captures."""

    @wraps(method)
    def run(self: Roma, *args: P.args, **options: P.kwargs) -> R:
        stream = nullcontext() if self._lane is None else torch.cuda.stream(self._lane.stream)
        with torch.no_grad(), GATE.running(), stream:
            return method(self, *args, **options)

    return run


class Roma(DuplexModel):
    """`DuplexModel` for EurekaTian/ROMA on upstream transformers."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self.settings = parse_settings(settings)
        self._lane: Lane | None = None
        """Where its steps run beside other sessions; alone, on the device's own stream."""

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            unit_samples=units.UNIT_SAMPLES,
            output_rate=OUTPUT_RATE,
            clock="virtual",
            voice_origin="native_talker",
            frame_rule=units.FRAME_RULE,
            max_media_s=self.settings.max_media_s,
            gpus=1,
            codec_hop_samples=HOP,
            max_sessions=MOST_SESSIONS,
        )

    def preflight(self) -> Sequence[str]:
        settings = self.settings
        if settings.revision is not None and not Path(settings.model_path).expanduser().is_dir():
            return ()  # a hub id: what is wrong with its files shows once they are fetched
        try:
            folder = find_snapshot(settings.model_path, settings.revision)
        except HfdError as error:
            return (str(error),)
        with quiet_transformers():
            problems = snapshot_problems(folder, settings.speak_head, settings.speaker)
        return [f"{folder}: {problem}" for problem in problems]

    def load(self) -> Identity:
        if self.sessions > 1:  # the driver's 8 would make streams of different sessions wait
            os.environ.setdefault("CUDA_DEVICE_MAX_CONNECTIONS", "32")
        began = time.perf_counter()
        self._parts = self.load_parts()
        for warning in self._parts.facts.get("packages_differ", ()):
            print(f"roma: {warning}", file=sys.stderr)
        loaded = time.perf_counter()
        self._steps = self.make_steps(self._parts)
        self._turns = make_turns(self._parts.tokenizer, self.settings.system_prompt)
        positions = most_positions(self._parts.model.config)
        self._room = Room(self.settings, self._turns, positions, self._steps.slots)
        warm = time.perf_counter()
        return self._identity(load_s=loaded - began, warm_up_s=warm - loaded)

    def share(self) -> Roma:
        """A session with its own caches, graphs, streams and buffers on the same weights.

        Nothing is batched: each session replays the very steps that it would replay alone.
        """
        other = copy.copy(self)
        try:
            other._steps = self.make_steps(self._parts)
        except HfdError as error:
            raise HfdError(
                f"{error.problem}; {self.sessions} sessions are to share the card",
                field=f"{error.field}, sessions",
                remedy="Lower sessions, or settings.max_media_s to the longest file there is",
            ) from error
        other._room = replace(self._room, slots=other._steps.slots)
        if self._parts.device.type == "cuda":
            self._lane = self._lane or Lane.make(self._parts.device)
            other._lane = Lane.make(self._parts.device)
            torch.cuda.synchronize(self._parts.device)  # what was loaded is there for all streams
        return other

    def load_parts(self) -> Parts:
        """The snapshot of the settings; benchmarks give random weights here."""
        return load_snapshot(self.settings, self.sessions)

    def make_steps(self, parts: Parts) -> Steps:
        """The step implementation that the settings and the device ask for, warmed up."""
        with torch.no_grad():
            return make_steps(parts, self.settings)

    def _identity(self, load_s: float, warm_up_s: float) -> Identity:
        device = self._parts.device
        gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else None
        return Identity(
            name="ROMA",
            weights=self._parts.weights,
            dtypes=self._parts.dtypes,
            versions={"torch": torch.__version__, "transformers": transformers.__version__},
            device=gpu or device.type,
            detail={
                **self._parts.facts,
                "acceleration": self._steps.acceleration,
                "tf32": self.settings.tf32 and device.type == "cuda",
                "speak_head_layers": list(self._parts.head.layers),
                "load_s": round(load_s, 3),
                "warm_up_s": round(warm_up_s, 3),
            },
        )

    @_in_session
    def open(self, sample: SampleInfo, emit: Emit) -> None:
        grid = units.frame_grid(sample.width, sample.height)
        self._room.check(sample, grid)
        self._sample = sample
        self._emit = emit
        self._position = self._tokens = 0
        self._now_s = 0.0
        self._pieces = self._answers = self._interruptions = 0
        self._text_cut = False
        self._said_text = False
        self._open_piece: Piece | None = None
        self._trigger = Trigger(self.settings)
        self._steps.begin(grid)
        # What is slow once for video frames of a new size happens before the media starts.
        self._steps.shrink([np.zeros((sample.height, sample.width, 3), np.uint8)] * 2)
        self._voice = self._make_voice(emit)
        self._read_text(self._turns.opening)
        self._voice.settle()  # the talker reads the prompt before the first second, too
        self._steps.wait()

    @_in_session
    def push(self, unit: Unit) -> None:
        due_s = unit.t1 + 1 + self.settings.lead_s
        decision = self._listen(unit)
        self._now_s = unit.t1
        if decision == "drop":
            self._end_answer("not_continued", complete=False)
        if decision == "interrupt":
            self._interrupt()
        if decision in ("answer", "interrupt", "continue"):
            self._speak(due_s, unit.is_last, begins=decision != "continue")
        self._voice.advance(due_s)
        self._voice.settle()
        self._steps.wait()

    @_in_session
    def finish(self) -> Mapping[str, Any]:
        """Let the running answer end: its text first, without new units, then all of its speech.

        Then a firing that was kept for the end of the speech gets its answer.
        """
        self._write_to_the_end()
        self._voice.advance(ALL)
        if self._trigger.held:
            self._now_s = max(self._now_s, self._voice.heard_until_s)
            self._begin_answer()
            self._open_piece = self._begin_piece()
            self._write_to_the_end()
            self._voice.advance(ALL)
        self._steps.wait()
        truncated = self._text_cut or self._voice.truncated
        return {
            "end_reason": "answer_cut" if truncated else "input_done",
            "truncated": truncated,
            "context_tokens": self._tokens,
            "next_position": self._position,
            "replies": self._pieces,
            "answers": self._answers,
            "interruptions": self._interruptions,
        }

    def close(self) -> None:
        self._open_piece = None

    # Stage one: listen

    def _listen(self, unit: Unit) -> Decision:
        """Read one second and decide what to do (`Trigger.decide`)."""
        began = time.perf_counter()
        frames = units.two_frames(unit)
        # Sound first: a GPU hears while the CPU still turns the video frames into RGB.
        heard = self._steps.hear(units.log_mel(self._parts.mel, unit.pcm))
        patches, grid = units.patchify(self._steps.shrink([frame.rgb for frame in frames]))
        prepared = time.perf_counter()
        embeds, written = self._unit_embeds(self._steps.see(patches, grid), heard)
        thought = self._think(embeds, written, units.unit_positions(self._position, grid))
        probability = self._parts.head.probability(thought.layers)
        decision = self._decide(probability, unit.t1)
        values = {
            "speak_probability": probability,
            "decision": decision,
            "pictures": [frame.index for frame in frames],
            "grid": [grid.height, grid.width],
            "context_tokens": self._tokens,
            "next_position": self._position,
            "prepare_s": round(prepared - began, 6),
            "read_s": round(time.perf_counter() - prepared, 6),
        }
        self._emit(Metric("listen", values))
        return decision

    def _unit_embeds(
        self, seen: torch.Tensor, heard: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """The unit's embeddings for the thinker, and for the talker (zero where media is)."""
        config = self._parts.model.config.thinker_config
        vision_bos, vision_eos = config.vision_start_token_id, config.vision_end_token_id
        audio_bos, audio_eos = config.audio_start_token_id, config.audio_end_token_id
        marks = self._steps.embed([vision_bos, audio_bos, audio_eos, vision_eos])
        media = torch.cat([seen, heard])
        embeds = torch.cat([marks[:2], media, marks[2:]])
        return embeds, torch.cat([marks[:2], torch.zeros_like(media), marks[2:]])

    def _decide(self, probability: float, now_s: float) -> Decision:
        speaking_until = ALL if self._voice.is_busy else self._voice.heard_until_s
        return self._trigger.decide(probability, now_s, speaking_until)

    # Stage two: speak

    def _speak(self, due_s: float, is_last: bool, begins: bool) -> None:
        """Write one piece of text, the first of an answer if `begins`, spoken as it comes."""
        if begins:
            self._begin_answer()
        piece = self._begin_piece()
        ended, wrote = self._write(piece, self.settings.text_tokens_per_s, due_s)
        ended |= not wrote  # a piece that the model leaves empty is no promise of more
        owed = not ended and self.settings.continuation != "stop"
        if owed and is_last:
            self._open_piece = piece
        else:
            self._close_piece(piece, ended, owed)

    def _begin_answer(self) -> None:
        self._text = TextStream(self._parts.tokenizer)
        self._separate = self._said_text
        self._answers += 1

    def _begin_piece(self) -> Piece:
        self._emit(Control(ControlKind.SPEAK, {"stage": "speak", "piece": self._pieces}))
        self._next = self._read_text(self._turns.to_assistant).token
        self._began_s = self._now_s
        seed = self._seed("piece", self._pieces)
        self._pieces += 1
        return self._voice.begin_piece(self._position, self._now_s, seed)

    def _write(self, piece: Piece, limit: int, due_s: float) -> tuple[bool, int]:
        """Write up to `limit` tokens.

        Returns:
            Whether the model ended its answer there, and how many tokens it wrote.
        """
        for wrote in range(limit):
            token = int(self._next)
            if token in (self._turns.end, self._turns.pause):
                return token == self._turns.end, wrote
            embeds = self._steps.embed([token])
            thought = self._think(embeds, embeds, units.text_positions(self._position, 1))
            piece.texts.append(thought.hidden[0] + embeds[0])
            self._next = thought.token
            self._emit_text(self._text.add(token))
            self._voice.advance(due_s)
        return int(self._next) == self._turns.end, limit

    def _write_to_the_end(self) -> None:
        """Write the open answer on, in its own turn: no unit follows the file's last one."""
        left, first = self.settings.tail_tokens, True
        while (piece := self._open_piece) is not None:
            ended, wrote = self._write(piece, left, ALL)
            left -= wrote
            # Where the model itself breaks off, the rest is another piece, unless it is empty.
            owed = not ended and left > 0 and (first or wrote > 0)
            self._close_piece(piece, ended or (left > 0 and not owed), owed)
            self._open_piece = self._begin_piece() if owed else None
            first = False

    def _close_piece(self, piece: Piece, ended: bool, owed: bool) -> None:
        """Close the piece for talker and thinker; `owed` if another may continue it."""
        self._voice.close_piece(piece)
        self._read_text(self._turns.close_ended if ended else self._turns.close_cut)
        if owed:
            self._trigger.text_ended(self._began_s, owed=True)
        else:
            self._end_answer("ended" if ended else "cut", complete=ended)

    def _end_answer(self, reason: str, complete: bool) -> None:
        """The answer's text is over; what its last character lacks is said as it is."""
        self._emit_text(self._text.end())
        self._trigger.text_ended(self._began_s, owed=False)
        self._text_cut |= not complete
        self._emit(Control(ControlKind.TURN_END, {"reason": reason}))

    def _interrupt(self) -> None:
        """Give up the answer in hand: sound that has not been played and text not yet written."""
        self._interruptions += 1
        dropped = self._voice.drop(self._now_s)
        self._emit(Control(ControlKind.INTERRUPT, {"by": "speak_head", **dropped}))

    def _emit_text(self, delta: str) -> None:
        """Say characters of the answer in hand; a line end parts it from the answer before."""
        if delta:
            self._emit(Text(f"\n{delta}" if self._separate else delta))
            self._separate, self._said_text = False, True

    # Shared

    def _read_text(self, ids: list[int]) -> Thought:
        embeds = self._steps.embed(ids)
        return self._think(embeds, embeds, units.text_positions(self._position, len(ids)))

    def _think(
        self, embeds: torch.Tensor, written: torch.Tensor, positions: torch.Tensor
    ) -> Thought:
        """Feed the thinker, and queue what it thought for the talker (state + text embedding)."""
        self._room.check_position(int(positions.max()), self._now_s)
        thought = self._steps.think(embeds, positions)
        self._voice.read(thought.hidden + written, positions)
        self._position = int(positions[0, -1]) + 1
        self._tokens += embeds.shape[0]
        return thought

    def _make_voice(self, emit: Emit) -> Voice:
        model, speaker = self._parts.model, self._parts.speaker
        talker, dit = model.talker, model.token2wav.code2wav_dit_model
        framing = [speaker.bos_token, talker.text_eos_token, talker.text_pad_token]
        block = dit.block_size // FRAMES_PER_CODE

        def vocoder(seed: int) -> Vocoder:
            noise = block_noise(seed, dit.block_size, dit.mel_dim)
            return Vocoder(self._steps, noise, block, self.settings.speech == "whole_reply")

        return Voice(
            steps=self._steps,
            markers=Markers(*self._steps.embed(framing)),
            stops=frozenset([talker.codec_pad_token, talker.codec_eos_token]),
            max_codes=self.settings.max_codes,
            vocoder=vocoder,
            play=_player(emit),
            report=lambda facts: emit(Metric("speech", facts)),
            check_position=lambda last: self._room.check_position(last, self._now_s),
        )

    def _seed(self, *path: object) -> int:
        """A seed of 40 bits for one purpose of this sample."""
        text = ":".join(str(part) for part in (self._sample.seed, *path))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:5], "big")


def _player(emit: Emit) -> Callable[[np.ndarray], None]:
    return lambda pcm: emit(Audio(pcm))
