"""Who speaks when: the utterances of all sessions share the slots of one talker.

All that can take a step take it together, in one batch. Utterances for which there is no slot wait
in the order of their first text. One that waits for text keeps its slot until its talker session is
over, or until its text has not come for too long.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from hfd.models.tts.speech import Outcome, Policy, Speech, Voice


@dataclass
class Job:
    """An utterance on its way through the talker.

    Attributes:
        speech: the utterance.
        on_done: called in the talker's thread with how it went, or with why the talker broke.
        on_start: called in the talker's thread when it gets its first slot.
        session: whose it is: utterances of one session speak one after the other.
    """

    speech: Speech
    on_done: Callable[[Outcome | Exception], None]
    on_start: Callable[[], None] = lambda: None
    session: object = None


class Talker:
    """One voice, in a thread of its own."""

    def __init__(
        self, voice: Voice, policy: Policy, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._voice, self._policy, self._clock = voice, policy, clock
        self._bell = threading.Event()
        self._new: deque[Job] = deque()  # from other threads
        self._waiting: deque[Job] = deque()  # have text, but no slot
        self._resting: list[Job] = []  # their session met its cap, and their text is not over
        self._speaking: dict[int, Job] = {}
        self.frames = 0

    @property
    def waiting(self) -> int:
        """Utterances that have text and no slot."""
        return len(self._new) + len(self._waiting)

    def wake(self) -> None:
        """Something has changed; from any thread."""
        self._bell.set()

    def submit(self, job: Job) -> None:
        """Queue an utterance that has text behind all that came before; from any thread."""
        self._new.append(job)
        self._bell.set()

    def run(self) -> None:
        """Speak for ever; returns only after the voice broke, which every utterance is told."""
        try:
            while True:
                self._bell.clear()
                pause = self.tick()
                if pause > 0:
                    self._bell.wait(None if math.isinf(pause) else pause)
        except Exception as error:
            for job in (*self._speaking.values(), *self._resting, *self._waiting, *self._new):
                job.on_done(error)
            raise

    def tick(self) -> float:
        """One step of all that can take one.

        Returns:
            Seconds until there is something to do unless something changes: 0 after a step,
            infinity when nobody waits.
        """
        now = self._clock()
        self._sort(now)
        for slot, job in self._speaking.items():
            if job.speech.is_dry:
                job.speech.give_out(self._voice, slot, now)
        due = {slot: job.speech.due(now) for slot, job in self._speaking.items()}
        moves = {
            slot: self._speaking[slot].speech.next_move(now)
            for slot, time_due in due.items()
            if time_due <= now
        }
        if not moves:
            limits = [
                job.speech.feed.last_text + self._policy.abandon_s
                for job in (*self._speaking.values(), *self._resting)
            ]
            return max(min([*due.values(), *limits], default=math.inf) - now, 1e-4)
        began = self._clock()
        ended = self._voice.step(moves)
        took_s = self._clock() - began
        self.frames += len(moves) - len(ended)
        for slot in moves:
            speech = self._speaking[slot].speech
            if speech.stepped(self._voice, slot, took_s, slot in ended, self._clock()):
                self._session_over(slot)
        return 0.0

    def _sort(self, now: float) -> None:
        """Drop what is cancelled, give up what is abandoned, and fill the slots."""
        while self._new:
            self._waiting.append(self._new.popleft())
        for job in (*self._speaking.values(), *self._resting):
            job.speech.give_up_waiting(now)
        for slot, job in list(self._speaking.items()):
            if job.speech.feed.cancelled:
                del self._speaking[slot]
                job.on_done(job.speech.close())
        for job in list(self._resting):
            if job.speech.feed.has_text or job.speech.feed.over:
                self._resting.remove(job)
                self._waiting.appendleft(job)  # before its session's next utterance
        for job in [job for job in self._waiting if not job.speech.feed.has_text]:
            self._waiting.remove(job)
            job.on_done(job.speech.close())
        for slot in range(self._voice.slots):
            if slot not in self._speaking and (waiting := self._next()):
                self._begin(slot, waiting)

    def _next(self) -> Job | None:
        """The first that waits and whose session is not speaking."""
        busy = [job.session for job in (*self._speaking.values(), *self._resting)]
        for job in self._waiting:
            if job.session is None or all(job.session is not session for session in busy):
                self._waiting.remove(job)
                return job
        return None

    def _begin(self, slot: int, job: Job) -> None:
        first = job.speech.outcome.segments == 0
        if job.speech.begin(self._voice, slot):
            self._speaking[slot] = job
            if first:
                job.on_start()
        else:  # cancelled in this moment
            job.on_done(job.speech.close())

    def _session_over(self, slot: int) -> None:
        """A talker session has ended; text that is left opens another one at once."""
        job = self._speaking.pop(slot)
        if job.speech.feed.has_text:
            self._begin(slot, job)
        elif job.speech.feed.over:
            job.on_done(job.speech.close())
        else:
            self._resting.append(job)
