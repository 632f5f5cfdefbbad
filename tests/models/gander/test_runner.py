"""What Gander does beyond MiniCPM-o: it breaks itself off, and speaks ahead (on the double)."""

from __future__ import annotations

import pytest

from hfd.duplex.events import Audio, Control
from hfd.errors import HfdError
from hfd.models.registry import create_model
from tests.fakes.gander import CODES, INTERRUPT, DoubleGander, usual_units
from tests.fakes.minicpmo import LISTEN, SPEAK, TURN_END, Script, spoken
from tests.models.minicpmo.helpers import (
    comparable,
    controls,
    make_units,
    metrics,
    run,
    sound,
    text,
)

CODE = 960


def double(units, **more):
    known = Script.__dataclass_fields__
    model = DoubleGander({k: v for k, v in more.items() if k not in known})
    given = {"codes": CODES} | {k: v for k, v in more.items() if k in known}
    model.script = Script(units, **given)
    model.load()
    return model


def test_an_interrupt_cuts_the_playback_is_counted_and_ends_the_turn():
    events, ending = run(double(usual_units()), make_units(6))
    assert controls(events) == [
        *(["listen"], ["speak"], [], ["interrupt", "turn_end", "listen"], []),
        *(["speak", "turn_end"], []),
    ]
    (cut,) = [e for e in events[3] if isinstance(e, Control) and e.kind == "interrupt"]
    assert cut.detail == {"number": 1}
    assert ending["interruptions"] == 1 and ending["turns"] == 2 and not ending["truncated"]
    assert metrics(events, "interruptions") == [{"count": 1}]
    assert text(events) == "It is a  Two."
    assert not any(isinstance(e, Audio) for e in events[3] + events[4])


def test_two_seconds_of_sound_for_one_of_media_are_given_whole():
    events, _ = run(double(usual_units()), make_units(6))
    assert [len(sound([unit])) // CODE for unit in events] == [0, 47, 50, 0, 0, 50, 0]


def test_a_cut_character_of_an_interrupted_turn_is_no_part_of_the_next():
    units = [[SPEAK, *spoken("红")[:2]], [INTERRUPT], [SPEAK, *spoken("色"), TURN_END]]
    events, _ = run(double(units), make_units(3))
    assert text(events).endswith("色") and "红" not in text(events)


def test_an_interrupt_while_it_listens_is_counted_and_ends_nothing():
    events, ending = run(double([[LISTEN], [INTERRUPT], [LISTEN]]), make_units(3))
    assert controls(events) == [["listen"], ["interrupt"], [], []]
    assert ending["end_reason"] == "no_speech" and ending["turns"] == 0


def test_nothing_withheld_is_left_to_flush_after_an_interrupt():
    events, ending = run(double([[SPEAK, *spoken("a")], [INTERRUPT]]), make_units(2))
    assert not len(sound(events[2:])) and not ending["truncated"]


def test_an_open_turn_is_flushed_once_and_told_as_truncated():
    events, ending = run(double([[SPEAK, *spoken("a")]]), make_units(1))
    assert ending["truncated"] and len(sound(events[1:])) == 3 * CODE


def test_no_tools_are_given_and_the_prompt_is_that_of_its_training():
    model = double(usual_units())
    run(model, make_units(1))
    run(double(usual_units(), system_prompt="你好"), make_units(1))
    (prepared,) = model._parts.runner.prepared
    assert prepared == {
        "prompt": "the prompt of its training",
        "voice": "voice.wav",
        "tools": None,
    }


def test_a_tool_call_is_an_error():
    model = double(usual_units())
    model._parts.runner.streaming_generate = lambda **_: {"is_tool_call": True}
    with pytest.raises(RuntimeError, match="given none"):
        run(model, make_units(1))


def test_a_second_that_the_talker_has_no_room_for_fails_the_sample():
    model = double(usual_units())

    def full(**_):
        raise RuntimeError("Talker has no positional context left for this S3 unit")

    model._parts.runner.streaming_generate = full
    with pytest.raises(RuntimeError, match="no positional context left"):
        run(model, make_units(1))


def test_files_beyond_its_training_are_refused_never_cropped():
    assert double([]).capabilities.max_media_s == 112
    assert double([], frames="first").capabilities.max_media_s == 128
    with pytest.raises(HfdError, match="fills the model's 16384 positions at 2 s"):
        run(double([], context_step=8_150), make_units(4))


def digest(outcome):
    return [comparable(unit) for unit in outcome[0]], outcome[1]


def test_a_b_a_gives_a_twice_bit_for_bit():
    model = double(usual_units())
    first = digest(run(model, make_units(6), seed=5))
    run(model, make_units(3, seed=4), seed=6)
    assert digest(run(model, make_units(6), seed=5)) == first


PLACES = {"model_path": "m", "repo_path": "r", "gander_path": "g"}


@pytest.mark.parametrize(
    "settings, words",
    [
        ({**PLACES, "window": "context_slate"}, "drops old seconds"),
        ({**PLACES, "gander_path": None}, "settings.gander_path"),
        ({**PLACES, "thinker_path": "t", "talker_path": "k"}, "settings.gander_path"),
        ({"model_path": "m", "repo_path": "r", "thinker_path": "t"}, "settings.gander_path"),
        ({"model_path": "m", "gander_path": "g"}, "settings.repo_path"),
        ({**PLACES, "tokens_per_unit": 10}, "settings.tokens_per_unit"),
        ({**PLACES, "length_penalty": 0.8}, "settings.length_penalty"),
        ({**PLACES, "speech_temperature": 0.5}, "settings.speech_temperature"),
        ({**PLACES, "variant": "venus"}, "settings.variant"),
    ],
)
def test_settings_that_do_not_fit_are_refused_by_name(settings, words):
    with pytest.raises(HfdError, match=words):
        create_model("gander", settings)
