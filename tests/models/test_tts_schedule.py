"""Who speaks when, on a schedule of the test's own: gaps, order, caps and what is given up."""

from __future__ import annotations

import numpy as np
import pytest

from hfd.models.tts.protocol import FRAME_S, FRAME_SAMPLES
from hfd.models.tts.schedule import Job, Talker
from hfd.models.tts.speech import END, Manner, Policy, Speech, TextFeed

SOUND_S = 0.002
FRAMES_AFTER_TEXT = 20


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


class SlowVoice:
    """Each step and each piece of sound takes time; speech goes on for a while after its text."""

    max_frames = 300
    text_vocabulary = 1000

    def __init__(self, clock, slots, step_s):
        self.slots, self._clock, self._step_s = slots, clock, step_s
        self.sides, self.after = {}, {}
        self.together = []

    def tokens(self, text):
        return list(text.encode())

    def begin(self, slot, token, manner):
        self.sides[slot], self.after[slot] = [token], 0

    def step(self, moves):
        self._clock.now += self._step_s
        self.together.append(len(moves))
        ended = set()
        for slot, move in moves.items():
            if move is not None:
                self.sides[slot].append(move.side)
                self.after[slot] += move.may_end
                if self.after[slot] > FRAMES_AFTER_TEXT:
                    ended.add(slot)
        return ended

    def pcm(self, slot, frames):
        self._clock.now += SOUND_S
        return np.zeros(frames * FRAME_SAMPLES, np.int16)


class Room:
    """A talker whose utterances are fed at given times."""

    def __init__(self, slots=1, policy=None, step_s=0.012):
        self._policy = policy or Policy()
        self.clock = Clock()
        self.voice = SlowVoice(self.clock, slots, step_s)
        self.talker = Talker(self.voice, self._policy, self.clock)
        self.outcomes, self.chunks, self.begun = {}, {}, []
        self._events = []

    def say(self, name, times, end=None, sizes=(1,)):
        """One token at each of `times`; the text is over at `end` (default: with the last)."""
        feed = TextFeed(clock=self.clock)
        self.chunks[name] = []
        speech = Speech(
            feed,
            Manner("ryan", "auto", 0),
            self._policy,
            sizes,
            lambda chunk: self.chunks[name].append((self.clock.now, chunk)),
        )
        job = Job(
            speech,
            lambda outcome: self.outcomes.update({name: outcome}),
            lambda: self.begun.append(name),
        )
        for number, moment in enumerate(times):
            self._events.append((moment, number, lambda n=number: feed.put(n, [n])))
        self._events.append((times[0], 0.5, lambda: self.talker.submit(job)))
        self._events.append((times[-1] if end is None else end, 1e6, feed.finish))
        return feed

    def run(self, until=300.0):
        """Let time pass until everything has been said."""
        events = sorted(self._events, key=lambda event: event[:2])
        while self.clock.now < until:
            while events and events[0][0] <= self.clock.now:
                events.pop(0)[2]()
            pause = self.talker.tick()
            if len(self.outcomes) == len(self.chunks) and not events:
                return
            if pause > 0:
                next_event = events[0][0] if events else np.inf
                self.clock.now = min(self.clock.now + pause, max(next_event, self.clock.now))

    def gaps(self, name):
        """How long the listener hears nothing between the first sound and the last."""
        heard_until, gaps = None, []
        for arrival, chunk in self.chunks[name]:
            if heard_until is not None:
                gaps.append(max(0.0, arrival - heard_until))
            heard_until = max(arrival, heard_until or 0.0) + chunk.frames * FRAME_S
        return gaps


def steady(count, start=0.0, interval=0.08):
    return [start + number * interval for number in range(count)]


@pytest.mark.parametrize("sizes", [(1,), (4,), (1, 2, 4)])
@pytest.mark.parametrize("interval", [0.02, 0.08, 0.2])
def test_speech_of_forty_tokens_never_pauses_of_itself(sizes, interval):
    room = Room()
    room.say("a", steady(40, interval=interval), sizes=sizes)
    room.run()
    assert max(room.gaps("a")) == 0.0
    outcome = room.outcomes["a"]
    assert (outcome.eos, outcome.tokens, outcome.segments) == ("codec", 40, 1)
    sides = room.voice.sides[0]
    assert [side for side in sides if side >= 0] == list(range(40))
    assert sides.count(END) == 1 and sides.index(END) > sides.index(39)


def test_text_in_time_costs_hardly_a_step_of_padding():
    """A token for each frame is the pace of the model that the text comes from."""
    room = Room()
    room.say("a", steady(40))
    room.run()
    assert room.outcomes["a"].pad_steps <= 1


def test_text_that_stays_away_is_padded_in_real_time_and_then_spoken():
    room = Room()
    room.say("a", [*steady(10), 1.9, 1.98])
    room.run()
    outcome = room.outcomes["a"]
    assert max(room.gaps("a")) == 0.0 and outcome.tokens == 12 and outcome.segments == 1
    assert 10 <= outcome.pad_steps <= 16  # 1.1 s of frames
    before = [chunk for moment, chunk in room.chunks["a"] if moment < 1.9]
    assert len(before) <= 2 + 1.9 / FRAME_S  # no faster than it is heard: the text is to come


def test_the_last_step_of_a_wait_is_early_enough_for_a_frame_that_takes_long():
    room = Room(step_s=0.06)
    room.say("a", steady(20, interval=0.3))
    room.run()
    assert max(room.gaps("a")) == 0.0


def test_chunks_grow_where_there_is_text_and_are_cut_short_where_it_is_late():
    room = Room()
    room.say("full", [0.0] * 30, sizes=(1, 2, 4))
    room.run()
    frames = [chunk.frames for _, chunk in room.chunks["full"]]
    assert frames[:3] == [1, 2, 4] and set(frames[2:-1]) == {4}
    assert sum(frames) == room.outcomes["full"].frames == 30 + FRAMES_AFTER_TEXT
    assert [chunk.frame_index for _, chunk in room.chunks["full"]] == [
        sum(frames[:number]) for number in range(len(frames))
    ]
    room = Room()
    room.say("late", steady(20, interval=0.08), sizes=(4,))
    room.run()
    assert room.chunks["late"][0][0] < 0.05  # what is there is given out before a wait


def test_utterances_beyond_the_slots_are_spoken_in_the_order_of_their_first_text():
    room = Room(slots=1)
    for number, name in enumerate("abc"):
        room.say(name, [0.01 * number] * 5)
    room.run()
    assert room.begun == ["a", "b", "c"]
    ends = [room.chunks[name][-1][0] for name in "abc"]
    starts = [room.chunks[name][0][0] for name in "abc"]
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))


def test_as_many_as_there_are_slots_speak_together_in_one_batch():
    room = Room(slots=4)
    for number in range(6):
        room.say(str(number), steady(30, start=0.03 * number))
    room.run()
    assert max(room.voice.together) == 4
    assert all(outcome.tokens == 30 for outcome in room.outcomes.values())
    assert all(max(room.gaps(str(number))) == 0.0 for number in range(4))


def test_an_utterance_without_text_gives_its_slot_back_after_the_stated_time():
    policy = Policy(abandon_s=3.0)
    room = Room(policy=policy)
    idle = room.say("idle", [0.0], end=200.0)
    room.say("next", [0.5] * 5)
    room.run(until=20.0)
    assert idle.finished and room.outcomes["idle"].eos == "abandoned"
    assert room.outcomes["idle"].frames >= 12  # what there was has been spoken
    assert room.chunks["next"][0][0] < 0.5 + policy.abandon_s + 1.0


def test_text_after_a_frame_cap_opens_another_session_of_the_same_utterance():
    room = Room()
    room.say("a", [0.0, 6.0, 6.08])
    room.run()
    outcome = room.outcomes["a"]
    assert (outcome.segments, outcome.tokens, outcome.eos) == (2, 3, "codec")
    first = [chunk for moment, chunk in room.chunks["a"] if moment < 6.0]
    assert sum(chunk.frames for chunk in first) == Policy().cap(1)
    frames = [chunk.frames for _, chunk in room.chunks["a"]]
    assert sum(frames) == outcome.frames


def test_cancelling_frees_the_slot_at_the_next_step_and_sends_no_more():
    room = Room()
    feed = room.say("a", steady(100))
    room.say("b", [1.0] * 3)
    room._events.append((2.0, 2e6, feed.cancel))
    room.run()
    assert room.outcomes["a"].eos == "cancelled"
    assert room.chunks["a"][-1][0] <= 2.0 and room.chunks["b"][0][0] < 2.1


def test_a_broken_voice_is_told_to_every_utterance():
    room = Room(slots=1)
    for name in "abc":
        room.say(name, [0.0] * 3)
    events = sorted(room._events, key=lambda event: event[:2])
    for _, _, call in events:
        call()
    room.voice.step = lambda moves: 1 / 0
    with pytest.raises(ZeroDivisionError):
        room.talker.run()
    assert all(isinstance(room.outcomes[name], ZeroDivisionError) for name in "abc")
