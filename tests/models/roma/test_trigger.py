"""When the head's firings begin, go on with, or cut an answer."""

import pytest

from hfd.models.roma.settings import parse_settings
from hfd.models.roma.trigger import Trigger

HIGH, LOW = 0.99, 0.1


def trigger(**settings):
    return Trigger(parse_settings({"model_path": "x", **settings}))


def follow(rule, heads, speech_s, owed_s=0):
    """Decisions of seconds 1, 2, ... where every answer is `speech_s` long.

    Its text goes on for `owed_s` further seconds.
    """
    decisions, until, owes = [], 0.0, 0
    for second, probability in enumerate(heads, start=1):
        decisions.append(rule.decide(probability, float(second), until))
        if decisions[-1] in ("answer", "interrupt"):
            until, owes = second + speech_s, owed_s
        elif decisions[-1] == "continue":
            owes -= 1
        if decisions[-1] in ("answer", "interrupt", "continue"):
            rule.text_ended(float(second), owed=owes > 0)
        if decisions[-1] == "drop":
            rule.text_ended(float(second), owed=False)
    return decisions


def heads(*fires, seconds=12):
    return [HIGH if second in fires else LOW for second in range(1, seconds + 1)]


def begun(decisions):
    return {n: d for n, d in enumerate(decisions, start=1) if d in ("answer", "interrupt")}


def test_the_head_must_pass_its_threshold():
    rule = trigger(threshold=0.6)
    assert rule.decide(0.6, 1.0, 0.0) == "listen"
    assert rule.decide(0.61, 1.0, 0.0) == "answer"


@pytest.mark.parametrize("owed_s", [0, 2, 100])
def test_a_correction_while_the_first_answer_is_spoken_gives_two_answers_and_one_cut(owed_s):
    """Also where the first answer's text would never end."""
    decisions = follow(trigger(), heads(3, 7), speech_s=6, owed_s=owed_s)
    assert begun(decisions) == {3: "answer", 7: "interrupt"}


def test_a_head_that_stays_high_does_not_cut_its_own_answer():
    decisions = follow(trigger(), heads(3, 4, 5, 6, 7, 8), speech_s=6)
    assert begun(decisions) == {3: "answer"}
    assert decisions[3:8] == ["sustained"] * 5


def test_a_head_that_stays_high_while_text_is_owed_goes_on_with_the_text():
    decisions = follow(trigger(), heads(3, 4, 5, 6), speech_s=20, owed_s=2)
    assert decisions[2:6] == ["answer", "continue", "continue", "sustained"]


def test_a_silent_head_drops_owed_text_only_by_setting():
    assert follow(trigger(), heads(3), 9, owed_s=2)[3:6] == ["continue", "continue", "listen"]
    asks = follow(trigger(continuation="ask"), heads(3, 4), 9, owed_s=3)
    assert asks[2:6] == ["answer", "continue", "drop", "listen"]


def test_how_far_the_head_must_have_fallen_is_a_setting():
    dips = [HIGH, 0.97, HIGH]
    assert follow(trigger(), dips, 9) == ["answer", "listen", "interrupt"]
    assert follow(trigger(rearm_below=0.5), dips, 9) == ["answer", "listen", "sustained"]
    assert follow(trigger(rearm_below=1.0), [HIGH] * 3, 9) == ["answer", "interrupt", "interrupt"]


def test_a_held_firing_is_followed_when_the_speech_has_ended():
    decisions = follow(trigger(while_speaking="hold"), heads(3, 7), speech_s=6, owed_s=2)
    assert begun(decisions) == {3: "answer", 9: "answer"}
    assert decisions[6:8] == ["hold", "hold"]


def test_a_firing_held_while_text_is_owed_is_not_lost():
    decisions = follow(trigger(while_speaking="hold"), heads(3, 5), speech_s=6, owed_s=4)
    assert decisions[2:7] == ["answer", "continue", "continue", "continue", "continue"]
    assert begun(decisions) == {3: "answer", 9: "answer"}


def test_a_queued_answer_begins_at_once_and_cuts_nothing():
    decisions = follow(trigger(while_speaking="queue"), heads(3, 7), speech_s=6)
    assert begun(decisions) == {3: "answer", 7: "answer"}


def test_nothing_begins_in_the_refractory_time():
    rule = trigger(refractory_s=3.0)
    assert follow(rule, heads(1, 3, 4, 7), speech_s=2)[:7] == [
        *("answer", "listen", "refractory", "answer"),
        *("listen", "listen", "answer"),
    ]
    cut = follow(trigger(refractory_s=3.0), heads(1, 3, 5), speech_s=9)
    assert begun(cut) == {1: "answer", 5: "interrupt"} and cut[2] == "refractory"
