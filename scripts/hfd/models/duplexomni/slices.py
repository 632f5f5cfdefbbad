"""One sample: slice after slice through thinker and talker, every slice accounted for.

Two workers, one for each server. The talker's worker takes a slice when the thinker's has
finished it, so text and sound of a slice stay together and slices stay in order. With the virtual
clock `push` waits for both; with the arrival clock it returns at once, and the talker of slice i
runs while the thinker works on slice i + 1.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from hfd.duplex.events import Audio, Control, ControlKind, Metric, Text
from hfd.duplex.model import Emit
from hfd.duplex.units import Unit
from hfd.errors import HfdError
from hfd.media_time import samples_to_seconds
from hfd.models.duplexomni.blob import ThinkerBlob
from hfd.models.duplexomni.deadlines import Deadlines
from hfd.models.duplexomni.frames import SentFrame, frame_of
from hfd.models.duplexomni.prompts import EMPTY_REPLY
from hfd.models.duplexomni.reply import Reply, parse_reply
from hfd.models.duplexomni.request import RequestBody
from hfd.models.duplexomni.s2 import System2
from hfd.models.duplexomni.settings import Settings
from hfd.models.duplexomni.stack import Stack
from hfd.models.duplexomni.wire import SLICE_OUT_SAMPLES, SOUND_RULE, forget, speak, think
from hfd.models.http import ServerFailed
from hfd.models.sockets.failures import SampleFailure
from hfd.pcm import to_int16

SILENCE = np.zeros(SLICE_OUT_SAMPLES, np.int16)


@dataclass(frozen=True)
class Thought:
    """A slice after the thinker.

    Attributes:
        index: the slice.
        blob: the thinker's answer as it came, for the talker.
        gated: the talker's sound of this slice is not to be heard.
        facts: what is recorded of the slice.
    """

    index: int
    blob: bytes
    gated: bool
    facts: dict[str, Any]


class SliceLoop:
    """Everything that belongs to one sample; made for it, closed after it."""

    def __init__(
        self,
        settings: Settings,
        stack: Stack,
        *,
        model: str,
        session_id: str,
        seed: int,
        media_s: float,
        emit: Emit,
    ) -> None:
        self._settings = settings
        self._media_s = media_s
        self._stack = stack
        self._session_id = session_id
        self._emit = emit
        self._body = RequestBody(
            model=model,
            session_id=session_id,
            system_prompt=settings.system_prompt,
            temperature=settings.temperature,
            max_tokens=settings.max_tokens,
        )
        self._s2 = None if settings.s2 is None else System2(settings.s2, seed)
        self._drawing = ThreadPoolExecutor(1, "jpeg")
        self._thinking = ThreadPoolExecutor(1, "thinker")
        self._speaking = ThreadPoolExecutor(1, "talker")
        self._pending: deque[Future[None]] = deque()
        self._ending = threading.Lock()
        self._end: HfdError | None = None  # why no slice is sent any more: the first error
        self._gate = _Gate()
        self._deadlines = Deadlines(settings.max_lag_s) if settings.clock == "arrival" else None
        self._counts = {"spoken": 0, "empty": 0, "gated": 0, "dropped": 0}
        self._unreadable = 0
        self._last_words = ""

    def push(self, unit: Unit) -> None:
        """Take one slice; an error of this or an earlier slice is raised here."""
        if self._deadlines is not None:
            self._deadlines.is_due(unit, time.monotonic())
        frame = frame_of(unit, self._settings, self._drawing)
        pcm = to_int16(unit.pcm).tobytes()
        thought = self._thinking.submit(self._think, unit.index, pcm, frame)
        self._pending.append(self._speaking.submit(self._speak, thought))
        if self._settings.clock == "virtual":
            self._pending.popleft().result()
        while self._pending and self._pending[0].done():
            self._pending.popleft().result()

    def finish(self) -> Mapping[str, Any]:
        """Wait for the slices in flight; nothing is generated after the last one.

        Raises:
            HfdError: an error of a slice, or ``never_ended``.
        """
        while self._pending:
            self._wait_for(self._pending.popleft())
        self._stack.served()
        if self._s2 is not None:
            self._s2.wait()
        speaking = bool(self._last_words.strip())
        return {
            "end_reason": "input_end_while_speaking" if speaking else "input_end",
            "truncated": False,  # whether those words were all it had to say cannot be told
            "slices": self._counts,
            "unreadable_slices": self._unreadable,
            "sound_rule": SOUND_RULE,
            **({} if self._deadlines is None else {"wire_lag_ms": self._deadlines.lags()}),
        }

    def _wait_for(self, slice_: Future[None]) -> None:
        if self._deadlines is None:
            return slice_.result()
        limit = self._media_s + self._settings.drain_max_s
        try:
            slice_.result(timeout=max(0.0, self._deadlines.zero + limit - time.monotonic()))
        except FutureTimeout:
            raise SampleFailure(
                "never_ended",
                f"the last slice was not answered {self._settings.drain_max_s:g} s "
                "after the file's end",
                remedy="The servers are too slow for real time: more GPUs, or clock: virtual",
            ) from None

    def close(self) -> None:
        """End what is in flight and forget the session on the talker."""
        with self._ending:
            self._end = self._end or HfdError("not sent: the sample has ended")
        if self._s2 is not None:
            self._s2.wait()
        self._stack.thinker.abort()
        self._stack.talker.abort()
        for pool in (self._thinking, self._speaking, self._drawing):
            pool.shutdown(wait=True, cancel_futures=True)
        with suppress(HfdError):
            forget(self._stack.talker, self._session_id)

    def _think(self, index: int, pcm: bytes, frame: SentFrame | None) -> Thought:
        try:
            return self._thinker_turn(index, pcm, frame)
        except HfdError as error:
            raise self._failed(index, error) from None

    def _thinker_turn(self, index: int, pcm: bytes, frame: SentFrame | None) -> Thought:
        self._stop_if_ended()
        image = frame.jpeg.result() if frame else None
        command = self._s2.take(index) if self._s2 else ""
        self._body.add_slice(pcm, image, command)
        began = time.perf_counter()
        blob, answer = self._ask(index)
        thinker_s = time.perf_counter() - began
        self._body.add_reply(answer.text.strip() or EMPTY_REPLY)
        reply = parse_reply(answer.text)
        gated = self._announce(index, reply)
        if self._s2:
            self._drive_s2(self._s2, reply, frame)
        self._unreadable += reply.form == "unreadable"
        self._last_words = reply.tts
        facts = {
            "logical_s": samples_to_seconds((index + 1) * len(pcm) // 2),
            "picture": frame.index if frame else None,
            "from_s2": command,
            "reply": answer.text,
            "reply_form": reply.form,
            "asr": reply.asr,
            "finish_reason": answer.finish_reason,
            "context_tokens": answer.context_tokens,
            "completion_tokens": answer.completion_tokens,
            "thinker_s": round(thinker_s, 6),
            **({} if self._deadlines is None else {"lag_ms": self._deadlines.lag_ms(index)}),
        }
        return Thought(index, blob, gated, facts)

    def _ask(self, index: int) -> tuple[bytes, ThinkerBlob]:
        """One thinker turn; only before the first answer is there a second try."""

        def turn() -> tuple[bytes, ThinkerBlob]:
            left = None if self._deadlines is None else partial(self._deadlines.left, index)
            return think(self._stack.thinker, self._session_id, *self._body.parts, left=left)

        try:
            return turn()
        except ServerFailed:
            if index > 0 or self._end is not None:
                raise
            return turn()

    def _announce(self, index: int, reply: Reply) -> bool:
        """Emit a slice's decisions and words; True if its sound is not to be heard."""
        with self._gate.lock:
            if reply.stop:
                self._gate.stopped_at = index
                self._gate.shut = True
                self._emit(Control(ControlKind.STOP, input_seq=index))
            if reply.tts:
                self._gate.shut = False
                self._emit(Text(reply.tts, input_seq=index))
            if reply.think or reply.wait:
                kind = ControlKind.THINK if reply.think else ControlKind.WAIT
                self._emit(Control(kind, input_seq=index))
            return self._gate.shut

    def _drive_s2(self, s2: System2, reply: Reply, frame: SentFrame | None) -> None:
        if frame is not None and frame.s2_jpeg is not None:
            s2.saw(frame.s2_jpeg.result())
        s2.heard("User", reply.asr)
        s2.heard("Agent", reply.tts)
        if reply.think:
            s2.think()
        elif reply.wait:
            s2.wait()

    def _speak(self, thinking: Future[Thought]) -> None:
        thought = thinking.result()
        try:
            self._talker_turn(thought)
        except HfdError as error:
            raise self._failed(thought.index, error) from None

    def _talker_turn(self, thought: Thought) -> None:
        """Voice one slice.

        An empty or gated slice is an explicit silence of the same length, so the line of slices
        never shifts; sound that a stop overtook is dropped, as is all that had
        not been played by then.
        """
        self._stop_if_ended()
        began = time.perf_counter()
        sound, turn = speak(self._stack.talker, self._session_id, thought.blob)
        talker_s = time.perf_counter() - began
        with self._gate.lock:
            if thought.index < self._gate.stopped_at:
                status = "dropped"
            elif sound is None:
                status = "empty"
            else:
                status = "gated" if thought.gated else "spoken"
            if status != "dropped":
                heard = sound.pcm if sound is not None and status == "spoken" else SILENCE
                self._emit(Audio(heard, thought.index))
        self._counts[status] += 1
        facts = {
            **thought.facts,
            "talker_s": round(talker_s, 6),
            "status": status,
            "talker": turn,
            "talker_sha256": None if sound is None else sound.talker_sha256,
        }
        self._emit(Metric("slice", facts, input_seq=thought.index))

    def _stop_if_ended(self) -> None:
        with self._ending:
            if self._end is not None:
                raise self._end

    def _failed(self, index: int, error: HfdError) -> HfdError:
        """The error that ended the sample: this one, unless there was one before."""
        with self._ending:
            self._end = self._end or self._named(index, error)
            return self._end

    def _named(self, index: int, error: HfdError) -> HfdError:
        """The error with its slice, and with what the log of a server of ours says of it."""
        if isinstance(error, ServerFailed):
            error = self._stack.explained(error)
        return HfdError(error.problem, file=error.file, field=f"slice {index}", remedy=error.remedy)


class _Gate:
    """Whether the talker may be heard; the lock keeps a stop and a sound from passing each other.

    Attributes:
        shut: since a stop no words have come.
        stopped_at: the last slice that stopped; sound of earlier slices is not to be heard.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.shut = False
        self.stopped_at = -1
