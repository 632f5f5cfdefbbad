"""One second in, one second's events out: upstream's habits met one by one (on the double)."""

import numpy as np
import pytest

from hfd.duplex.events import Audio, Control, Metric, Text
from hfd.errors import HfdError
from tests.fakes.minicpmo import CHUNK_END, LISTEN, SPEAK, TURN_END, spoken, usual_units
from tests.models.minicpmo.helpers import (
    comparable,
    controls,
    double,
    make_units,
    metrics,
    run,
    sample,
    sound,
    text,
)

CODE = 960


def test_a_conversation_as_events():
    events, ending = run(double(usual_units()), make_units(8))
    assert text(events) == "Two people are on 红色 chairs. Yes."
    assert controls(events) == [
        *(["listen"], [], ["speak"], [], ["turn_end"], ["listen"], ["speak", "turn_end"]),
        *(["listen"], []),
    ]
    assert ending == {
        "end_reason": "input_done",
        "truncated": False,
        "context_tokens": metrics(events, "answer")[-1]["context_tokens"],
        "turns": 2,
    }
    assert [len(sound([unit])) // CODE for unit in events] == [0, 0, 22, 25, 28, 0, 25, 0, 0]


def test_a_character_cut_by_a_second_is_given_whole_with_the_later_one():
    events, _ = run(double(usual_units()), make_units(8))
    deltas = [[e.delta for e in unit if isinstance(e, Text)] for unit in events]
    assert deltas[3:5] == [["are on "], ["红色 chairs."]]


def test_listening_gives_no_sound_though_upstream_hands_over_a_second_of_zeros():
    events, ending = run(double([]), make_units(3))
    assert not any(isinstance(e, Audio) for unit in events for e in unit)
    assert (ending["end_reason"], ending["truncated"]) == ("no_speech", False)


def test_an_open_turn_is_flushed_once_and_told_as_truncated():
    model = double([[LISTEN], [SPEAK, *spoken("And then")], [SPEAK, *spoken(" he")]])
    events, ending = run(model, make_units(3))
    assert ending["truncated"] and ending["end_reason"] == "open_turn"
    assert ending["reason"] == "input ended in an open turn"
    assert text(events) == "And then he"
    assert [len(sound([unit])) // CODE for unit in events] == [0, 22, 25, 3]
    assert model._parts.duplex.calls.count("streaming_prefill") == 3  # nothing was fed after it


def test_words_before_a_listen_in_the_same_second_are_counted_and_never_given_out():
    units = [[SPEAK, *spoken("Well")], [SPEAK, *spoken("no"), TURN_END, LISTEN], [LISTEN]]
    events, ending = run(double(units), make_units(3))
    (lost,) = metrics(events, "lost_text_tokens")
    assert lost["tokens"] == 3 and text(events) == "Well"
    assert controls(events)[1] == ["listen", "turn_end"]
    assert not any(isinstance(e, Audio) for e in events[1])
    assert not ending["truncated"]
    assert len(sound(events)) == 25 * CODE  # what the vocoder withheld comes at the end


def test_a_listen_within_a_turn_does_not_end_it():
    units = [[SPEAK, *spoken("a")], [LISTEN, *spoken("b")], [SPEAK, *spoken("c"), TURN_END]]
    events, _ = run(double(units), make_units(3))
    assert controls(events) == [["speak"], [], ["turn_end"], []]
    assert text(events) == "abc"


def test_a_word_after_the_turns_end_goes_on_with_the_turn():
    units = [[SPEAK, *spoken("a"), TURN_END, *spoken("b")], [SPEAK, *spoken("c"), TURN_END]]
    events, ending = run(double(units), make_units(2))
    assert controls(events) == [["speak"], ["turn_end"], []]
    assert text(events) == "abc" and ending["turns"] == 1


def test_a_word_in_place_of_the_decision_is_in_no_text_as_upstream_has_it():
    events, _ = run(double([[*spoken("xyz"), TURN_END]]), make_units(1))
    assert text(events) == "yz"


def test_speak_without_words_is_a_second_of_sound_and_no_error():
    events, _ = run(double([[SPEAK, CHUNK_END], [SPEAK, *spoken("a"), TURN_END]]), make_units(2))
    assert text(events) == "a" and len(sound(events[:1])) == 22 * CODE


def test_the_talkers_own_cap_at_a_turns_end_is_told():
    units = [[SPEAK, *spoken("a"), TURN_END]]
    assert metrics(run(double(units), make_units(1))[0], "talker_cap_at_turn_end")
    assert not metrics(run(double(units, codes=9), make_units(1))[0], "talker_cap_at_turn_end")


def test_no_codes_at_all_is_no_sound():
    events, _ = run(double([[SPEAK, *spoken("a"), TURN_END]], codes=0), make_units(1))
    assert text(events) == "a" and not len(sound(events))


def test_the_encoders_own_reset_is_told():
    events, _ = run(double([]), make_units(31))
    assert metrics(events, "apm_reset") == [{"positions_before": 1450}]
    assert any(isinstance(e, Metric) and e.name == "apm_reset" for e in events[29])


def test_every_part_has_its_cost_and_every_second_its_context():
    events, _ = run(double(usual_units()), make_units(4))
    answers = metrics(events, "answer")
    assert [a["frames"] for a in answers] == [list(range(5 * n, 5 * n + 5)) for n in range(4)]
    assert all({"llm_s", "all_s", "codes", "text_tokens"} <= a.keys() for a in answers)
    context = [a["context_tokens"] for a in answers]
    assert context == sorted(context) and context[1] - context[0] == 147


def test_first_takes_one_frame_a_second():
    events, _ = run(double([], frames="first"), make_units(3))
    assert [a["frames"] for a in metrics(events, "answer")] == [[0], [5], [10]]


@pytest.mark.parametrize("kept", [1, 2, 4])
def test_a_last_second_of_fewer_frames_is_taken_whole(kept):
    units = [*make_units(2), *make_units(3, frames=kept)[2:]]
    events, _ = run(double([]), units)
    assert metrics(events, "answer")[-1]["frames"] == list(range(10, 10 + kept))


def test_reading_that_fails_is_an_error_with_upstreams_reason():
    model = double([], faults={1: "audio not enough: need 16000 samples"})
    with pytest.raises(RuntimeError, match="streaming_prefill failed: audio not enough"):
        run(model, make_units(3))


def test_a_turn_that_uses_up_the_talker_is_an_error_not_a_cut():
    words = [SPEAK, *spoken("eighteen letters!!")]
    with pytest.raises(RuntimeError, match=r"of the talker's 4096 positions"):
        run(double([words] * 100), make_units(100, width=32, height=32))


def test_a_context_that_would_overflow_is_an_error_not_a_window():
    with pytest.raises(HfdError, match=r"fills the model's 40960 positions at 2 s.*cropped"):
        run(double([], context_step=20_400), make_units(4))


def test_a_long_context_is_warned_of_in_the_result():
    _, short = run(double([], context_step=100), make_units(4))
    _, long = run(double([], context_step=3000), make_units(4))
    assert "warning" not in short
    assert long["warning"].startswith("the context passed 8192 tokens at 2 s")


def test_the_longest_file_is_what_the_positions_hold():
    assert double([]).capabilities.max_media_s == 282
    assert double([], frames="first").capabilities.max_media_s == 517


def test_a_missing_vocoder_cache_is_an_error_before_the_first_second():
    model = double([])
    model._parts.duplex.prepare = lambda **_: ""
    with pytest.raises(HfdError, match="vocoder has no cache"):
        run(model, make_units(1))


def digest(outcome):
    events, ending = outcome
    return [comparable(unit) for unit in events], ending


def test_a_b_a_gives_a_twice_bit_for_bit():
    model = double(usual_units())
    a, b = make_units(8), make_units(3, seed=4)
    first = digest(run(model, a, seed=5))
    run(model, b, seed=6)
    assert digest(run(model, a, seed=5)) == first
    assert digest(run(model, a, seed=7)) != first


def test_a_sample_that_failed_leaves_nothing_behind():
    model = double(usual_units())
    wanted = digest(run(model, make_units(8)))
    units = make_units(3, seed=4)
    model.open(sample(units), lambda event: None)
    model.push(units[0])
    model.close()
    assert digest(run(model, make_units(8))) == wanted


def test_what_the_vocoder_prints_does_not_reach_stdout(capsys):
    run(double([]), make_units(1))
    assert capsys.readouterr().out == ""


def test_venus_hands_tasks_to_nobody_and_never_speaks_them():
    units = [[SPEAK, *spoken("One moment. <delegate>weather")], [SPEAK, *spoken(" in Rome</dele")]]
    units += [[SPEAK, *spoken("gate>It is"), TURN_END]]
    events, _ = run(double(units, variant="venus", tokens_per_unit=100), make_units(3))
    assert text(events) == "One moment. It is"
    (task,) = [e for unit in events for e in unit if isinstance(e, Control) and e.kind == "think"]
    assert task.detail == {"tag": "delegate", "text": "weather in Rome"}
    plain, _ = run(double(units, tokens_per_unit=100), make_units(3))
    assert "<delegate>" in text(plain)


def test_a_length_penalty_that_the_code_does_not_take_is_refused():
    with pytest.raises(HfdError, match=r"settings.length_penalty.*takes no length_penalty"):
        double([], variant="venus", length_penalty=0.8)


def test_what_is_passed_to_every_call_is_recorded():
    model = double([])
    arguments = model.load().detail["generate"]
    assert arguments["top_k"] == 100 and arguments["text_repetition_window_size"] == 512


def test_samples_are_whole_numbers_of_codes():
    assert len(sound(run(double(usual_units()), make_units(8))[0])) % CODE == 0
    assert np.abs(sound(run(double(usual_units()), make_units(8))[0])).max() > 0
