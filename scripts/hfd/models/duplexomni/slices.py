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
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from hfd.duplex.events import Audio, Control, ControlKind, Metric, Text
from hfd.duplex.model import Emit
from hfd.duplex.units import Unit
from hfd.errors import HfdError
from hfd.media_time import samples_to_seconds
from hfd.models.duplexomni.blob import ThinkerBlob
from hfd.models.duplexomni.pictures import Picture, PictureFeed, jpeg
from hfd.models.duplexomni.reply import Reply, parse_reply
from hfd.models.duplexomni.request import RequestBody
from hfd.models.duplexomni.s2 import System2
from hfd.models.duplexomni.settings import Settings
from hfd.models.duplexomni.stack import Stack
from hfd.models.duplexomni.wire import SLICE_OUT_SAMPLES, ServerFailed, speak, think
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
        emit: Emit,
    ) -> None:
        self._settings = settings
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
        self._pictures = PictureFeed(
            settings.picture_interval,
            lambda frame: jpeg(frame, settings.picture_short_side, settings.jpeg_quality),
            self._drawing,
        )
        self._pending: deque[Future[None]] = deque()
        self._ending = threading.Lock()
        self._end: HfdError | None = None  # why no slice is sent any more: the first error
        self._gate = _Gate()
        self._counts = {"spoken": 0, "empty": 0, "gated": 0, "dropped": 0}
        self._unreadable = 0
        self._last_words = ""

    def push(self, unit: Unit) -> None:
        """Take one slice; an error of this or an earlier slice is raised here."""
        picture = self._pictures.take(unit)
        pcm = to_int16(unit.pcm).tobytes()
        thought = self._thinking.submit(self._think, unit.index, pcm, picture)
        self._pending.append(self._speaking.submit(self._speak, thought))
        if self._settings.clock == "virtual":
            self._pending.popleft().result()
        while self._pending and self._pending[0].done():
            self._pending.popleft().result()

    def finish(self) -> Mapping[str, Any]:
        """Wait for the slices in flight; nothing is generated after the last one."""
        while self._pending:
            self._pending.popleft().result()
        if self._s2 is not None:
            self._s2.wait()
        speaking = bool(self._last_words.strip())
        return {
            "end_reason": "input_end_while_speaking" if speaking else "input_end",
            "truncated": False,  # whether those words were all it had to say cannot be told
            "slices": self._counts,
            "unreadable_slices": self._unreadable,
        }

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
            self._stack.talker.request("DELETE", f"/v1/talker/session/{self._session_id}")

    def _think(self, index: int, pcm: bytes, picture: Picture | None) -> Thought:
        try:
            return self._thinker_turn(index, pcm, picture)
        except HfdError as error:
            raise self._failed(index, error) from None

    def _thinker_turn(self, index: int, pcm: bytes, picture: Picture | None) -> Thought:
        self._stop_if_ended()
        image = picture.jpeg.result() if picture else None
        command = self._s2.take(index) if self._s2 else ""
        self._body.add_slice(pcm, image, command)
        began = time.perf_counter()
        blob, answer = self._ask(first=index == 0)
        thinker_s = time.perf_counter() - began
        self._body.add_reply(answer.text)
        reply = parse_reply(answer.text)
        gated = self._announce(index, reply)
        if self._s2:
            self._drive_s2(self._s2, reply, image)
        self._unreadable += reply.form == "unreadable"
        self._last_words = reply.tts
        facts = {
            "logical_s": samples_to_seconds((index + 1) * len(pcm) // 2),
            "picture": picture.index if picture else None,
            "from_s2": command,
            "reply": answer.text,
            "reply_form": reply.form,
            "asr": reply.asr,
            "finish_reason": answer.finish_reason,
            "context_tokens": answer.context_tokens,
            "completion_tokens": answer.completion_tokens,
            "thinker_s": round(thinker_s, 6),
        }
        return Thought(index, blob, gated, facts)

    def _ask(self, *, first: bool) -> tuple[bytes, ThinkerBlob]:
        """One thinker turn; only before the first answer is there a second try."""
        try:
            return think(self._stack.thinker, self._session_id, *self._body.parts)
        except ServerFailed:
            if not first or self._end is not None:
                raise
            return think(self._stack.thinker, self._session_id, *self._body.parts)

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

    def _drive_s2(self, s2: System2, reply: Reply, image: bytes | None) -> None:
        if image is not None:
            s2.saw(image)
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
                self._emit(Audio(sound if status == "spoken" else SILENCE, thought.index))
        self._counts[status] += 1
        facts = {**thought.facts, "talker_s": round(talker_s, 6), "status": status, "talker": turn}
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
        """The error with its slice, and with the death notice if a server of ours has died."""
        if isinstance(error, ServerFailed):
            try:
                self._stack.check()
            except HfdError as death:
                error = death
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
