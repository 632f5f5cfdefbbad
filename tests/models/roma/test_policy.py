"""The whole model where answers meet: what is said, heard, cut and counted."""

import pytest
import torch

from hfd.duplex.events import Audio, Control, ControlKind, Metric, Text
from hfd.errors import HfdError
from hfd.models.registry import create_model
from hfd.models.roma.speak_head import SpeakHead
from hfd.stream.playback import Playback
from tests.models.roma.helpers import TINY, make_units, run

pytestmark = pytest.mark.heavy
RATE = 24_000


class Script:
    """Steps whose text has a given length and end: ``end``, ``pause``, or None for neither."""

    def __init__(self, steps, turns, letter, tokens, ending):
        self._steps = steps
        self._letter = letter
        self._wanted = tokens
        self._token = {"end": turns.end, "pause": turns.pause}.get(ending)
        self._header = len(turns.to_assistant)
        self._written = 0

    def __getattr__(self, name):
        return getattr(self._steps, name)

    def think(self, embeds, positions):
        thought = self._steps.think(embeds, positions)
        self._written = self._written + 1 if len(embeds) == 1 else 0
        token = torch.tensor(self._letter)
        if self._token is not None and self._written >= self._wanted:
            token = torch.tensor(self._token)
        return type(thought)(thought.hidden, thought.layers, token)


def without_stops(voice):
    voice._stops = frozenset()
    return voice


@pytest.fixture
def speaker(snapshot, monkeypatch):
    """Makes a model whose head fires at the given seconds and whose text is scripted.

    Every piece is spoken to `max_codes`: 6 s if not said otherwise.
    """

    def make(*fires, tokens=10, ending="end", **settings):
        chosen = {**TINY, "threshold": 0.9, "max_codes": 300, **settings}
        model = create_model("roma", {"model_path": str(snapshot), **chosen})
        model.load()
        make_voice = model._make_voice
        model._make_voice = lambda emit: without_stops(make_voice(emit))
        [letter] = model._parts.tokenizer.encode("a", add_special_tokens=False)
        model._steps = Script(model._steps, model._turns, letter, tokens, ending)
        monkeypatch.setattr(SpeakHead, "probability", lambda *_: next(heads))
        heads = iter([0.95 if second in fires else 0.05 for second in range(1, 99)])
        return model

    return make


def controls(events, kind):
    """(unit, detail) of every such control."""
    return [
        (number, event.detail)
        for number, unit in enumerate(events)
        for event in unit
        if isinstance(event, Control) and event.kind is kind
    ]


def text(events):
    return "".join(e.delta for unit in events for e in unit if isinstance(e, Text))


def heard(events):
    """The track if computing took no time: every unit's sound at the unit's end."""
    track = Playback(RATE)
    for number, unit in enumerate(events):
        for event in unit:
            if isinstance(event, Audio):
                track.add(event.pcm, number + 1.0)
            elif isinstance(event, Control) and event.kind is ControlKind.INTERRUPT:
                track.cut(number + 1.0)
    return track


def test_a_correction_cuts_the_old_answer_and_gets_its_own(speaker):
    """The head fires at 3 s and at 7 s, and the first answer is 6 s long."""
    events, ending = run(speaker(3, 7), make_units(10, width=64, height=48))
    cuts = controls(events, ControlKind.INTERRUPT)
    assert [number for number, _ in cuts] == [6]
    assert cuts[0][1] == {"by": "speak_head", "pieces": 1, "unspoken_tokens": 0}
    assert text(events) == "aaaaaaaaaa\naaaaaaaaaa"
    assert [number for number, _ in controls(events, ControlKind.SPEAK)] == [2, 6]
    track = heard(events)
    # 4 s of the old answer, 6 s of the new one. What was made ahead was dropped.
    assert track.segments() == [(3 * RATE, 13 * RATE)]
    assert 0 < track.cleared <= 2 * RATE
    assert (ending["answers"], ending["interruptions"], ending["truncated"]) == (2, 1, True)


def test_a_head_that_stays_high_gives_one_answer_and_no_cut(speaker):
    events, ending = run(speaker(3, 4, 5, 6, 7, 8), make_units(10, width=64, height=48))
    assert not controls(events, ControlKind.INTERRUPT)
    assert text(events) == "aaaaaaaaaa" and ending["answers"] == 1
    assert heard(events).segments() == [(3 * RATE, 9 * RATE)]


def test_text_that_does_not_end_does_not_shut_the_head_out(speaker):
    """Its pieces that were not spoken yet are dropped with it, and counted."""
    model = speaker(2, 5, ending=None, text_tokens_per_s=4, tail_tokens=4)
    events, ending = run(model, make_units(6, width=64, height=48))
    [(number, detail)] = controls(events, ControlKind.INTERRUPT)
    assert number == 4 and detail["pieces"] == 3 and detail["unspoken_tokens"] == 8
    assert ending["answers"] == 2 and text(events).count("\n") == 1


def test_what_was_dropped_stays_context_of_the_next_answer(speaker):
    """The new answer's voice has read everything, so it equals one after an uncut old answer."""
    last = []
    for while_speaking in ("interrupt", "queue"):
        model = speaker(1, 3, while_speaking=while_speaking, max_codes=150)
        events, _ = run(model, make_units(3, width=64, height=48))
        pieces = [e.values for unit in events for e in unit if getattr(e, "name", "") == "speech"]
        last.append(pieces[-1])
        sound = [e.pcm for unit in events for e in unit if isinstance(e, Audio)]
        last.append([chunk.tobytes() for chunk in sound[-3:]])
    assert last[:2] == last[2:]


def test_a_held_firing_gets_its_answer_after_the_speech_even_at_the_files_end(speaker):
    model = speaker(1, 3, while_speaking="hold")
    events, ending = run(model, make_units(4, width=64, height=48))
    assert not controls(events, ControlKind.INTERRUPT)
    assert [number for number, _ in controls(events, ControlKind.SPEAK)] == [0, 4]
    assert ending["answers"] == 2 and heard(events).samples == 12 * RATE


def test_a_pause_of_the_model_is_not_the_end_of_its_answer(speaker):
    model = speaker(1, ending="pause", tokens=3, tail_tokens=5)
    events, ending = run(model, make_units(3, width=64, height=48))
    assert text(events) == "a" * (3 + 3 + 3 + 5)
    assert not controls(events[:3], ControlKind.TURN_END)
    assert ending["answers"] == 1 and ending["truncated"]
    closing = model._parts.tokenizer.decode(model._turns.close_cut, skip_special_tokens=False)
    assert closing.startswith("<|endoftext|><|im_end|>")


def test_a_piece_without_a_token_ends_the_answer(speaker):
    events, ending = run(speaker(1, ending="pause", tokens=0), make_units(3, width=64, height=48))
    assert text(events) == "" and len(controls(events, ControlKind.SPEAK)) == 1
    assert controls(events, ControlKind.TURN_END) == [(0, {"reason": "ended"})]
    assert not ending["truncated"]


def test_a_character_is_whole_though_its_tokens_belong_to_two_pieces(speaker):
    model = speaker(1, ending=None, text_tokens_per_s=4, tail_tokens=0)
    spoken = model._parts.tokenizer.encode("ab好cd", add_special_tokens=False)
    spoken.insert(4, spoken[0])  # what the thinker says after a piece's last token is not written
    said = iter(spoken + [spoken[0]] * 20)
    think = model._steps.think

    def say(embeds, positions):
        thought = think(embeds, positions)
        number = len(embeds) in (1, len(model._turns.to_assistant))
        token = torch.tensor(next(said)) if number else thought.token
        return type(thought)(thought.hidden, thought.layers, token)

    model._steps.think = say
    events, _ = run(model, make_units(2, width=64, height=48))
    assert "ab好" in text(events) and "\ufffd" not in text(events)


def test_push_and_finish_wait_for_the_work_they_began(speaker):
    model = speaker(1, tokens=4, max_codes=30)
    steps, begun = model._steps, []

    class Watched:
        def __getattr__(self, name):
            found = getattr(steps, name)
            if not callable(found) or name == "read_code":
                return found

            def call(*given):
                begun.append(name)
                return found(*given)

            return call

    model._steps = Watched()
    ends = []
    model.open(*opening(units := make_units(2, width=64, height=48)))
    ends.append(begun[-1])
    for unit in units:
        model.push(unit)
        ends.append(begun[-1])
    model.finish()
    assert [*ends, begun[-1]] == ["wait"] * 4 and "start_sound" in begun


def opening(units):
    from tests.models.roma.helpers import sample

    return sample(units), lambda event: None


def test_the_position_range_ends_with_an_error_and_never_a_crop(speaker):
    model = speaker(1, ending=None)
    model._room = type(model._room)(model.settings, model._turns, 1300, None)
    with pytest.raises(HfdError, match="1300 positions at media second"):
        run(model, make_units(7, width=64, height=48))
    model.close()
    with pytest.raises(HfdError, match=r"needs \d+ positions for its 10 s"):
        run(model, make_units(10, width=64, height=48))


def test_metrics_say_what_was_decided(speaker):
    events, _ = run(speaker(1, 3), make_units(4, width=64, height=48))
    metrics = [e for unit in events for e in unit if isinstance(e, Metric)]
    decided = [e.values["decision"] for e in metrics if e.name == "listen"]
    assert decided == ["answer", "listen", "interrupt", "listen"]
    assert [e.values["dropped"] for e in metrics if e.name == "speech"] == [True, False]
