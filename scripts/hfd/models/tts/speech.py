"""One utterance: text that arrives bit by bit becomes frames, and none is lost.

One utterance is one talker session. Each frame of speech takes one text token while there is one.
If the text runs dry before it is over, the talker waits as long as there is sound to be heard; then
it goes on with padding, so that speech never pauses of itself. It may not end then: its
end-of-speech counts only once all text has been given to it.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hfd.models.tts.protocol import FRAME_S, FRAME_SAMPLES

PAD = -1
"""Text side of a step that has no token: the model's tts_pad."""
END = -2
"""Text side of the step after the last token, once: the model's tts_eos."""


@dataclass(frozen=True)
class Manner:
    """How an utterance is spoken; `seed` makes it repeatable."""

    speaker: str
    language: str
    seed: int


@dataclass(frozen=True)
class Move:
    """What takes an utterance to its next frame.

    Attributes:
        side: the text side: a token, `PAD` or `END`.
        may_end: whether the speech may be over instead.
    """

    side: int
    may_end: bool


class Voice(Protocol):
    """A talker with its codec: some utterances at a time, each in a slot, all in one thread."""

    slots: int
    """Utterances at a time."""
    max_frames: int
    """Frames that fit in one talker session."""
    text_vocabulary: int
    """Text tokens are numbers below this."""

    def tokens(self, text: str) -> list[int]:
        """Text tokens of a piece of text; called from another thread than the rest."""

    def begin(self, slot: int, token: int, manner: Manner) -> None:
        """Forget the slot's last utterance and start one with its first text token."""

    def step(self, moves: Mapping[int, Move | None]) -> set[int]:
        """Make the next frame of each of these slots; None for the first one after `begin`.

        Returns:
            The slots whose speech is over: they have no next frame.
        """

    def pcm(self, slot: int, frames: int) -> np.ndarray:
        """The sound of the slot's next frames (at most 8): int16, shape [frames * 1920]."""


@dataclass(frozen=True)
class Policy:
    """What to do when text is late and when speech does not end.

    Attributes:
        lead_s: so long before the sound runs out a step goes on without text (besides the time
            that a frame takes).
        abandon_s: text that is not over and does not come for so long ends the utterance.
        cap_frames, cap_frames_per_token: frame cap of one talker session, a limit against
            speech that never ends.
    """

    lead_s: float = 0.04
    abandon_s: float = 10.0
    cap_frames: int = 12
    cap_frames_per_token: int = 6

    def cap(self, tokens: int) -> int:
        return self.cap_frames + self.cap_frames_per_token * tokens


class TextFeed:
    """Tokens of one utterance on their way from the socket's thread to the talker's."""

    def __init__(
        self,
        changed: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`changed` is called after every change, `clock` gives the time of the last text."""
        self._tokens: deque[tuple[int, int]] = deque()
        self._lock = threading.Lock()
        self._changed, self._clock = changed, clock
        self.finished = self.cancelled = False
        self.last_text = clock()

    def put(self, seq: int, tokens: list[int]) -> None:
        """Append the tokens of text piece number `seq`."""
        with self._lock:
            self._tokens.extend((seq, token) for token in tokens)
            self.last_text = self._clock()
        self._changed()

    def finish(self) -> None:
        """No more text will come."""
        with self._lock:
            self.finished = True
        self._changed()

    def cancel(self) -> None:
        """Speak no more of it."""
        with self._lock:
            self.cancelled = self.finished = True
            self._tokens.clear()
        self._changed()

    def take(self) -> tuple[int, int] | None:
        """The next token and its piece's number, or None if there is none now."""
        with self._lock:
            return self._tokens.popleft() if self._tokens else None

    @property
    def has_text(self) -> bool:
        with self._lock:
            return bool(self._tokens)

    @property
    def over(self) -> bool:
        """Whether all text has been taken and no more will come."""
        with self._lock:
            return self.finished and not self._tokens


@dataclass(frozen=True)
class Chunk:
    """Sound of some frames, with the evidence of what it depends on.

    Attributes:
        frame_index: number of the first frame in the utterance.
        frames: how many; `pcm` has 1920 samples for each.
        pcm: int16.
        text_seq_consumed: the latest text piece that the talker had taken in.
        starved: whether a step since the last chunk had to wait for text.
        compute_s: time the frames took, without waiting for text.
    """

    frame_index: int
    frames: int
    pcm: np.ndarray
    text_seq_consumed: int
    starved: bool
    compute_s: float


@dataclass
class Outcome:
    """How an utterance went.

    Attributes:
        eos: ``codec`` (the talker ended), ``frame_cap``, ``cancelled`` or ``abandoned``.
        segments: talker sessions it took; more than one only if text came after a frame cap.
        starved_steps, starved_s: steps that had to wait for text, and for how long in all.
        pad_steps: steps that went on without text before the text was over.
    """

    eos: str = "codec"
    frames: int = 0
    tokens: int = 0
    segments: int = 0
    starved_steps: int = 0
    starved_s: float = 0.0
    pad_steps: int = 0


class Speech:
    """One utterance: what its talker does next, and the chunks of what it has done."""

    def __init__(
        self,
        feed: TextFeed,
        manner: Manner,
        policy: Policy,
        sizes: tuple[int, ...],
        on_chunk: Callable[[Chunk], None],
    ) -> None:
        """`sizes` are the frames of the first chunks; the last of them holds for all others."""
        self.feed, self.manner, self.outcome = feed, manner, Outcome()
        self._policy, self._sizes, self._on_chunk = policy, sizes, on_chunk
        self._seq, self._chunks, self._pending = -1, 0, 0
        self._begun = self._end_given = self._starved = self._abandoned = False
        self._segment_frames = self._segment_tokens = 0
        self._waits_since: float | None = None
        self._heard_until = -math.inf  # when the listener has heard all that was given out
        self._compute_s = self._frame_s = self._sound_s = 0.0

    # -- called by the talker's thread ---------------------------------------------------------

    @property
    def is_dry(self) -> bool:
        """Whether the next step has to wait for text."""
        ready = self._begun or self._end_given or self.feed.has_text or self.feed.over
        return not ready

    def begin(self, voice: Voice, slot: int) -> bool:
        """Start a talker session with the next token; False if there is none (any more)."""
        item = self.feed.take()
        if item is None:
            return False
        began = time.perf_counter()
        self.outcome.segments += 1
        self._segment_frames = self._segment_tokens = 0
        self._end_given, self._begun = False, True
        voice.begin(slot, self._consume(item), self.manner)
        self._compute_s += time.perf_counter() - began
        return True

    def next_move(self, now: float) -> Move | None:
        """What takes the talker to the next frame; None for the first one.

        To be asked when `due` has come, and not before.
        """
        if self._begun:
            return None
        if self._end_given:
            return Move(PAD, may_end=True)
        item = self.feed.take()
        self._note_wait(now)
        if item is not None:
            return Move(self._consume(item), may_end=False)
        if self.feed.over:
            self._end_given = True
            return Move(END, may_end=True)
        self.outcome.pad_steps += 1
        return Move(PAD, may_end=False)

    def due(self, now: float) -> float:
        """When the next step should be taken: now, or later if it waits for text."""
        if not self.is_dry:
            return now
        if self._waits_since is None:
            self._waits_since = now
        return max(now, self._heard_until - self._policy.lead_s - self._frame_s)

    def stepped(self, voice: Voice, slot: int, took_s: float, ended: bool, now: float) -> bool:
        """Note a step of `took_s`; gives out what is ready. Whether the talker session is over."""
        self._compute_s += took_s
        self._begun = False
        if ended:
            self.outcome.eos = "codec"
            self.give_out(voice, slot, now)
            return True
        self._frame_s = took_s + self._sound_s
        self._segment_frames += 1
        self._pending += 1
        self.outcome.frames += 1
        cap = min(self._policy.cap(self._segment_tokens), voice.max_frames)
        capped = self._segment_frames >= cap
        if capped:
            self.outcome.eos = "frame_cap"
        if capped or self._pending == self._sizes[min(self._chunks, len(self._sizes) - 1)]:
            self.give_out(voice, slot, now)
        return capped

    def give_out(self, voice: Voice, slot: int, now: float) -> None:
        """Decode and hand out the frames not yet heard."""
        frames, self._pending = self._pending, 0
        if not frames or self.feed.cancelled:
            return
        began = time.perf_counter()
        pcm = voice.pcm(slot, frames)
        if pcm.shape != (frames * FRAME_SAMPLES,):
            raise RuntimeError(f"codec gave {pcm.shape} samples for {frames} frames")
        self._sound_s = time.perf_counter() - began
        compute_s = self._compute_s + self._sound_s
        first = self.outcome.frames - frames
        self._on_chunk(Chunk(first, frames, pcm, self._seq, self._starved, compute_s))
        self._chunks += 1
        self._starved, self._compute_s = False, 0.0
        self._heard_until = max(self._heard_until, now) + frames * FRAME_S

    def give_up_waiting(self, now: float) -> None:
        """Take the text for complete if it has not come for too long; what there is is spoken."""
        late = now - self.feed.last_text >= self._policy.abandon_s
        if late and self.is_dry:
            self._abandoned = True
            self.feed.finish()

    def close(self) -> Outcome:
        """It is over; how it went."""
        if self.feed.cancelled:
            self.outcome.eos = "cancelled"
        elif self._abandoned:
            self.outcome.eos = "abandoned"
        return self.outcome

    # -- inner -------------------------------------------------------------------------------

    def _note_wait(self, now: float) -> None:
        if self._waits_since is not None:
            self.outcome.starved_steps += 1
            self.outcome.starved_s += now - self._waits_since
            self._starved, self._waits_since = True, None

    def _consume(self, item: tuple[int, int]) -> int:
        self._seq, token = item
        self.outcome.tokens += 1
        self._segment_tokens += 1
        return token
