"""When the talker steps: text that arrives bit by bit becomes frames, and none is lost.

One utterance is one talker session. Each frame of speech takes one text token while there is one.
If the text runs dry before it is over, the talker waits; after a while it goes on with padding,
and may not end: its end-of-speech counts only once all text has been given to it.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from hfd.models.tts.protocol import FRAME_SAMPLES

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


class Voice(Protocol):
    """A talker with its codec: one utterance at a time, one frame at a time, in one thread."""

    max_frames: int
    """Frames that fit in one talker session."""
    text_vocabulary: int
    """Text tokens are numbers below this."""

    def tokens(self, text: str) -> list[int]:
        """Text tokens of a piece of text; called from another thread than the rest."""

    def begin(self, token: int, manner: Manner) -> None:
        """Forget the last utterance and start one with its first text token."""

    def frame(self) -> None:
        """Complete the codes of the next frame."""

    def advance(self, side: int, may_end: bool) -> bool:
        """Step to the next frame with a token, `PAD` or `END` on the text side.

        Returns:
            True if the speech is over and there is no next frame; only if `may_end`.
        """

    def pcm(self, frames: int) -> np.ndarray:
        """The sound of the last `frames` frames: int16, shape [frames * 1920]."""


@dataclass(frozen=True)
class Policy:
    """What to do when text is late and when speech does not end.

    Attributes:
        starve_wait_s: how long the first step without text waits before padding is used.
        pad_interval_s: how long every further step of the same drought waits.
        abandon_s: text that is not over and does not come for so long ends the utterance.
        cap_frames, cap_frames_per_token: frame cap of one talker session, a limit against
            speech that never ends.
    """

    starve_wait_s: float = 0.5
    pad_interval_s: float = 0.08
    abandon_s: float = 20.0
    cap_frames: int = 12
    cap_frames_per_token: int = 6

    def cap(self, tokens: int) -> int:
        return self.cap_frames + self.cap_frames_per_token * tokens


class TextFeed:
    """Tokens of one utterance on their way from the socket's thread to the talker's."""

    def __init__(self) -> None:
        self._tokens: deque[tuple[int, int]] = deque()
        self._changed = threading.Condition()
        self.finished = False
        self.cancelled = False

    def put(self, seq: int, tokens: list[int]) -> None:
        """Append the tokens of text piece number `seq`."""
        with self._changed:
            self._tokens.extend((seq, token) for token in tokens)
            self._changed.notify()

    def finish(self) -> None:
        """No more text will come."""
        with self._changed:
            self.finished = True
            self._changed.notify()

    def cancel(self) -> None:
        """Speak no more of it."""
        with self._changed:
            self.cancelled = self.finished = True
            self._tokens.clear()
            self._changed.notify()

    def take(self, wait_s: float) -> tuple[int, int] | None:
        """The next (seq, token); None if there is none after `wait_s`, or none will ever come."""
        with self._changed:
            self._changed.wait_for(lambda: self._tokens or self.finished, wait_s)
            return self._tokens.popleft() if self._tokens else None

    @property
    def over(self) -> bool:
        """Whether all text has been taken and no more will come."""
        with self._changed:
            return self.finished and not self._tokens


@dataclass(frozen=True)
class Chunk:
    """Sound of some frames, with the evidence of what it depends on.

    Attributes:
        frame_index: number of the first frame in the utterance.
        frames: how many; `pcm` has 1920 samples for each.
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
    """Speaks one utterance from its feed, chunk by chunk."""

    def __init__(
        self,
        voice: Voice,
        feed: TextFeed,
        manner: Manner,
        policy: Policy,
        emit_every: int,
        on_chunk: Callable[[Chunk], None],
    ) -> None:
        self.outcome = Outcome()
        self._voice = voice
        self._feed = feed
        self._manner = manner
        self._policy = policy
        self._emit_every = emit_every
        self._on_chunk = on_chunk
        self._seq = -1
        self._pending = 0
        self._starved = False
        self._compute_s = 0.0

    def run(self) -> Outcome:
        """Speak until the text is over and the talker has ended, or something else ends it."""
        while first := self._feed.take(self._policy.abandon_s):
            self._segment(first)
        if self._feed.cancelled:
            self.outcome.eos = "cancelled"
        elif not self._feed.over:
            self.outcome.eos = "abandoned"
        return self.outcome

    def _segment(self, first: tuple[int, int]) -> None:
        """One talker session; leaves text in the feed only if the frame cap ended it."""
        outcome = self.outcome
        outcome.segments += 1
        frames = tokens = 0
        self._end_given = self._dry = False
        token = self._consume(first)
        tokens += 1
        self._timed(lambda: self._voice.begin(token, self._manner))
        while not self._feed.cancelled:
            self._timed(self._voice.frame)
            frames += 1
            outcome.frames += 1
            self._pending += 1
            if self._pending == self._emit_every:
                self._emit()
            if frames >= min(self._policy.cap(tokens), self._voice.max_frames):
                outcome.eos = "frame_cap"
                break
            side = self._next_side()
            tokens += side >= 0
            if self._timed(lambda side=side: self._voice.advance(side, self._end_given)):
                outcome.eos = "codec"
                break
        self._emit()

    def _next_side(self) -> int:
        """The text side of the next step; waits for late text as the policy says."""
        if self._end_given:
            return PAD
        item = self._feed.take(0.0)
        if item is None and not self._feed.over:
            item = self._wait_for_text()
        if item is not None:
            self._dry = False
            return self._consume(item)
        if self._feed.over:
            self._end_given = True
            return END
        self._dry = True
        self.outcome.pad_steps += 1
        return PAD

    def _wait_for_text(self) -> tuple[int, int] | None:
        policy = self._policy
        began = time.monotonic()
        item = self._feed.take(policy.pad_interval_s if self._dry else policy.starve_wait_s)
        self.outcome.starved_steps += 1
        self.outcome.starved_s += time.monotonic() - began
        self._starved = True
        return item

    def _consume(self, item: tuple[int, int]) -> int:
        self._seq, token = item
        self.outcome.tokens += 1
        return token

    def _timed(self, step: Callable[[], bool | None]) -> bool | None:
        began = time.perf_counter()
        result = step()
        self._compute_s += time.perf_counter() - began
        return result

    def _emit(self) -> None:
        """Decode and hand out the frames not yet heard."""
        frames, self._pending = self._pending, 0
        if not frames or self._feed.cancelled:
            return
        began = time.perf_counter()
        pcm = self._voice.pcm(frames)
        if pcm.shape != (frames * FRAME_SAMPLES,):
            raise RuntimeError(f"codec gave {pcm.shape} samples for {frames} frames")
        compute_s = self._compute_s + time.perf_counter() - began
        self._on_chunk(
            Chunk(self.outcome.frames - frames, frames, pcm, self._seq, self._starved, compute_s)
        )
        self._starved, self._compute_s = False, 0.0
