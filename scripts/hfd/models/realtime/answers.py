"""What a service says, as the listener has it: answers, their sound and words, and cuts."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hfd.duplex.events import Audio, Control, ControlKind, Event, Heard, Text
from hfd.models.realtime import facts as said
from hfd.models.realtime.dialect import Dialect, Message
from hfd.models.realtime.echo import numbers
from hfd.models.realtime.listener import SILENT_PEAK, Listener
from hfd.models.realtime.sound import incoming
from hfd.models.sockets.link import Link

Fact = (
    said.Sound
    | said.Words
    | said.AnswerBegan
    | said.AnswerEnded
    | said.Decision
    | said.UserWords
    | said.UserSpeech
    | said.Interrupted
)


class Answers:
    """One session's answers.

    Args:
        dialect: the session's.
        link: for its failures.
        listener: plays what comes.
        emit: takes events.
        send: sends a message soon.
        input_seq: the newest unit that an output of this moment can depend on; -1: none yet.

    Attributes:
        open: answers that have begun and not ended.
        counts: what happened how often.
        cuts: of each item that was cut: what was heard of it.
        usage: what the answers cost, by dotted name.
        limited_by: why the service ended an answer early, if it did.
        last_meant, last_audible: monotonic times of the last fact that means something (silence
            does not), and of the last sound or words.
    """

    def __init__(
        self,
        dialect: Dialect,
        link: Link,
        listener: Listener,
        emit: Callable[[Event], None],
        send: Callable[[Message], None],
        input_seq: Callable[[], int],
    ) -> None:
        self.open: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.cuts: list[dict[str, Any]] = []
        self.usage: dict[str, float] = {}
        self.limited_by = ""
        self.last_meant = time.monotonic()
        self.last_audible = 0.0
        self._dialect = dialect
        self._traits = dialect.traits
        self._link = link
        self._listener = listener
        self._emit = emit
        self._send = send
        self._input_seq = input_seq
        self._incoming = incoming(dialect.traits)
        self._ended: set[str] = set()
        self._cut: set[str] = set()
        self._items: dict[str, set[str]] = {}  # by answer
        self._whole_items: set[str] = set()

    def take(self, fact: Fact) -> None:
        """Take one fact at the moment it came.

        Raises:
            SampleFailure: the answer failed, or came before there was anything to answer.
        """
        if not isinstance(fact, said.Sound):
            self.last_meant = time.monotonic()
        match fact:
            case said.Sound():
                self._sound(fact)
            case said.Words():
                self._words(fact)
            case said.AnswerBegan(answer):
                self.open.add(answer)
                self.counts["answers"] += 1
            case said.AnswerEnded():
                self._answer_ended(fact)
            case said.Decision(kind, detail):
                self.counts[f"{kind}_decisions"] += 1
                self._control(ControlKind(kind), detail)
            case said.UserWords(text):
                self._emit(Heard(text, input_seq=self._input_seq()))
            case said.UserSpeech():
                self._user_speech(fact)
            case said.Interrupted(answer):
                self._interrupt(answer, "interrupted")

    def acknowledge_played(self) -> None:
        """Tell the service of items that were played to their end, if it wants to know."""
        for item, played_ms in self._listener.take_played(self._whole_items):
            for message in self._dialect.played(item, played_ms):
                self._send(message)

    def _sound(self, sound: said.Sound) -> None:
        if self._belongs_to_nobody(sound.answer):
            self.counts["late_sounds_dropped"] += 1
            return
        self._need_input("sound")
        if sound.answer and sound.answer not in self._ended:
            self.open.add(sound.answer)
        self._items.setdefault(sound.answer, set()).add(sound.item)
        self.counts["sounds"] += 1
        pcm = self._incoming(sound.data, sound.item)
        if not len(pcm):
            return
        if np.abs(pcm.astype(np.int32)).max() > SILENT_PEAK:
            self.last_audible = self.last_meant = time.monotonic()
        pcm = self._listener.add(pcm, sound.answer, sound.item)
        self._emit(Audio(pcm, self._input_seq()))

    def _words(self, words: said.Words) -> None:
        if self._belongs_to_nobody(words.answer):
            self.counts["late_words_dropped"] += 1
            return
        self._need_input("text")
        self.last_audible = time.monotonic()
        self._emit(Text(words.text, self._input_seq()))

    def _need_input(self, what: str) -> None:
        if self._input_seq() < 0:
            raise self._link.failure("protocol", f"{what} came before the first unit was sent")

    def _belongs_to_nobody(self, answer: str) -> bool:
        return answer != "" and answer in self._cut

    def _answer_ended(self, ended: said.AnswerEnded) -> None:
        for name, value in numbers(ended.usage).items():
            self.usage[name] = self.usage.get(name, 0) + value
        self.counts[f"answers_{ended.status}"] += 1
        self.open.discard(ended.answer)
        self._ended.add(ended.answer)
        if ended.status == "cancelled":
            self._interrupt(ended.answer, ended.reason or "cancelled")
        elif ended.status == "failed":
            raise self._link.failure("error", f"an answer failed: {ended.reason}")
        else:
            if ended.status == "incomplete":
                self.limited_by = ended.reason or "incomplete"
            self._whole_items |= self._items.pop(ended.answer, set())
            detail = {"answer": ended.answer, "status": ended.status}
            self._control(ControlKind.TURN_END, detail)

    def _user_speech(self, speech: said.UserSpeech) -> None:
        running = bool(self.open) or self._listener.left_s > 0
        if speech.began and self._traits.cuts_on_user_speech and running:
            self._interrupt("", "user_speech", speech.detail)
        else:
            heard = "begins" if speech.began else "ends"
            self._control(ControlKind.LISTEN, {"server_heard_user": heard, **speech.detail})

    def _interrupt(self, answer: str, why: str, more: Mapping[str, Any] | None = None) -> None:
        """The cut is now, when its signal has arrived; what comes late belongs to nobody."""
        if answer in self._cut and self._listener.left_s <= 0:
            return
        lost = self._listener.cut()
        ended = {answer} if answer else set(self.open)
        self._cut |= ended | {heard.answer for heard in lost}
        self.open -= self._cut
        report = [{"item": h.item, "heard_ms": h.heard_ms, "audio_ms": h.audio_ms} for h in lost]
        self.cuts += report
        self._control(ControlKind.INTERRUPT, {"why": why, "cut": report, **(more or {})})
        for heard in lost:
            for message in self._dialect.heard(heard.item, heard.heard_ms):
                self._send(message)

    def _control(self, kind: ControlKind, detail: Mapping[str, Any]) -> None:
        self._emit(Control(kind, dict(detail), self._input_seq()))
