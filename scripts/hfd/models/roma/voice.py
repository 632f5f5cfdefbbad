"""The speaking voice of one file: talker runs in the order of the text, vocoded as they grow.

The talker reads everything the thinker did, in order. What it reads is a script: stretches of
context, and pieces of reply at which it stops to speak. Context that arrives while a piece is
being spoken waits behind it, so every piece starts from the whole context up to its own turn.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from hfd.models.roma.capacity import IN_FLIGHT
from hfd.models.roma.steps import Steps
from hfd.models.roma.vocoder import Vocoder

CODE_S = 0.02
"""Seconds of speech per code."""


@dataclass
class Piece:
    """One reply piece as the talker reads it.

    Attributes:
        position: position id of the talker's first opening input.
        since_s: media second from which the piece may be heard.
        seed: its own seed, for codes and vocoder.
        texts: text states (hidden + embedding) the talker has not read yet, [hidden] each.
        is_open: whether more text may come.
        launched, codes: steps launched, codes read.
    """

    position: int
    since_s: float
    seed: int
    texts: deque[torch.Tensor] = field(default_factory=deque)
    is_open: bool = True
    launched: int = 0
    codes: int = 0


@dataclass(frozen=True)
class Markers:
    """Embeddings [hidden] that frame a piece: opening token of the voice, end of text, padding."""

    bos: torch.Tensor
    eos: torch.Tensor
    pad: torch.Tensor


class Voice:
    """Runs the talker's script and hands out sound.

    Args:
        steps: the model's steps, already at the beginning of the file.
        markers: embeddings that frame a piece.
        stops: codes that end a piece's speech.
        max_codes: longest speech of a piece.
        vocoder: makes the vocoder of one piece from its seed.
        play: takes float32 PCM at the moment it exists.
        report: takes the facts of a finished piece.
        check_position: raises where a position lies beyond the model's range.
    """

    def __init__(
        self,
        steps: Steps,
        markers: Markers,
        stops: frozenset[int],
        max_codes: int,
        vocoder: Callable[[int], Vocoder],
        play: Callable[[np.ndarray], None],
        report: Callable[[Mapping[str, Any]], None],
        check_position: Callable[[int], None],
    ) -> None:
        self._steps = steps
        self._markers = markers
        self._stops = stops
        self._max_codes = max_codes
        self._make_vocoder = vocoder
        self._check_position = check_position
        self._play = play
        self._report = report
        self._script: deque[tuple[torch.Tensor, torch.Tensor] | Piece] = deque()
        self._vocoder = vocoder(0)
        self.heard_until_s = 0.0
        """Media second until which the speech made so far plays, if making it took no time."""
        self.truncated = False
        """Whether a piece ever ended at `max_codes`."""

    @property
    def is_busy(self) -> bool:
        """Whether a piece has not been spoken to its end."""
        return any(isinstance(entry, Piece) for entry in self._script)

    def read(self, states: torch.Tensor, positions: torch.Tensor) -> None:
        """Add context: `states` [tokens, hidden] at `positions` [3, tokens]."""
        self._script.append((states, positions))

    def begin_piece(self, position: int, since_s: float, seed: int) -> Piece:
        """Open the next piece, after all context read so far."""
        piece = Piece(position, since_s, seed)
        self._script.append(piece)
        return piece

    def advance(self, until_s: float) -> None:
        """Speak on, piece after piece, until the speech reaches media second `until_s`.

        Stops earlier where the text is late: a step needs its own text state, never a guess.
        """
        while self.is_busy:
            self._catch_up()
            piece = self._script[0]
            assert isinstance(piece, Piece), "context before it has been read"
            if not self._speak(piece, until_s):
                return
            self._script.popleft()

    def drop(self, now_s: float) -> dict[str, int]:
        """Give up all speech that has not been played at media second `now_s`.

        What the thinker read and wrote stays context of later pieces, as it stays the thinker's.

        Returns:
            How many pieces were not spoken to their end, and how many of their tokens not at all.
        """
        pieces = [entry for entry in self._script if isinstance(entry, Piece)]
        for piece in pieces:
            if piece.launched:
                self._steps.end_speech()
                self._report_piece(piece, dropped=True)
        self._script = deque(entry for entry in self._script if not isinstance(entry, Piece))
        self._vocoder = self._make_vocoder(0)
        self.heard_until_s = min(self.heard_until_s, now_s)
        waiting = sum(max(0, len(piece.texts) - 1) for piece in pieces)  # the last is the marker
        return {"pieces": len(pieces), "unspoken_tokens": waiting}

    def settle(self) -> None:
        """Read the context that waits, then hand out all sound that is being made."""
        self._catch_up()
        self._vocoder.wait()
        self._drain()

    def _catch_up(self) -> None:
        """Read all context up to the next piece, so that a later piece can start at once."""
        stretches = []
        while self._script and not isinstance(self._script[0], Piece):
            stretches.append(self._script.popleft())
        if stretches:
            states, positions = zip(*stretches, strict=True)
            self._steps.read_context(torch.cat(states), torch.cat(positions, dim=1))

    def _speak(self, piece: Piece, until_s: float) -> bool:
        """Go on with a piece; True when it is over."""
        if piece.launched == 0:
            if not piece.texts:
                return not piece.is_open
            self._start(piece)
        while True:
            while piece.launched - piece.codes < IN_FLIGHT and self._launch(piece):
                pass
            if piece.launched == piece.codes or self.heard_until_s >= until_s:
                return False
            code = self._steps.read_code()
            piece.codes += 1
            stopped = code in self._stops
            if not stopped:
                self.heard_until_s += CODE_S
                self._vocoder.add(code)
                self._drain()
            if stopped or piece.codes == self._max_codes:
                self._end(piece, cut=not stopped)
                return True

    def _start(self, piece: Piece) -> None:
        self.heard_until_s = max(self.heard_until_s, piece.since_s)
        self._vocoder = self._make_vocoder(piece.seed)
        generator = torch.Generator().manual_seed(piece.seed)
        draws = torch.rand(self._max_codes + IN_FLIGHT, generator=generator)
        opening = torch.stack([self._markers.bos, piece.texts.popleft()])
        self._steps.start_speech(opening, piece.position, draws)
        piece.launched = 1

    def _launch(self, piece: Piece) -> bool:
        """Launch the next step if its text state exists."""
        if piece.texts:
            state = piece.texts.popleft()
        elif piece.is_open:
            return False
        else:
            state = self._markers.pad
        self._check_position(piece.position + piece.launched + 1)
        self._steps.next_code(state)
        piece.launched += 1
        return True

    def _end(self, piece: Piece, cut: bool) -> None:
        self._steps.end_speech()
        self._vocoder.end()
        self._drain()
        self.truncated |= cut
        self._report_piece(piece, cut=cut)

    def _report_piece(self, piece: Piece, cut: bool = False, dropped: bool = False) -> None:
        codes = self._vocoder.codes
        self._report({"codes": codes, "seed": piece.seed, "cut": cut, "dropped": dropped})

    def _drain(self) -> None:
        for pcm in self._vocoder.take():
            self._play(pcm)

    def close_piece(self, piece: Piece) -> None:
        """No more text: the talker reads the end-of-text marker next, then padding."""
        piece.is_open = False
        if piece.texts or piece.launched:
            piece.texts.append(self._markers.eos)


ALL = math.inf
"""`Voice.advance` until everything is said."""
