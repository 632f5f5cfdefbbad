"""``[STOP]``: the voice ends at once and stays away until words return."""

from __future__ import annotations

import numpy as np
import pytest
import soundfile

from tests.fakes.duplexomni import SLICE_OUT, Talker, Thinker, dict_text, tone
from tests.models.duplexomni.conftest import of_kind, slice_facts

STOP = "[STOP]"


def answers(**by_slice):
    """Words in slices 0-2, silence after that, but for what `by_slice` says (``s3=...``)."""

    def answer(index, messages):
        usual = {"tts": f"词{index}"} if index < 3 else {}
        return dict_text(**by_slice.get(f"s{index}", usual))

    return answer


def test_a_stop_in_mid_sentence_silences_the_talker_until_words_return(servers, converse):
    """The talker of the reference speaks in every slice, asked or not."""
    thinker = servers(Thinker, answers(s3={"tts_control": STOP}, s6={"tts": "好"}))
    talker = servers(Talker)
    run = converse(thinker, talker)
    status = [facts["status"] for facts in slice_facts(run.trace)]
    assert status == ["spoken"] * 3 + ["gated"] * 3 + ["spoken"] * 4
    (stop,) = of_kind(run.trace, "control")
    assert stop["control"] == "stop" and stop["input_seq"] == 3
    wav, _ = soundfile.read(run.out / "assistant_audio.wav", dtype="int16")
    back = of_kind(run.trace, "audio")[6]["play_at"]
    assert not wav[stop["cut_at"] : back].any(), "sound after the stop"
    assert wav[back] == tone(6)
    assert [turn.index for turn in talker.heard] == list(range(10)), "the talker keeps its history"


@pytest.mark.realtime
def test_a_stop_drops_what_was_queued_but_not_played(servers, converse):
    """A first slice of 0.6 s puts 0.6 s of sound in the queue when slice 3 stops it."""
    thinker = servers(
        Thinker,
        answers(s3={"tts_control": STOP}),
        delay_s=lambda index: 0.6 if index == 0 else 0.0,
    )
    run = converse(thinker)
    (stop,) = of_kind(run.trace, "control")
    assert 0.3 < stop["cleared"] / 24000 < 0.8


def test_words_in_the_slice_of_the_stop_are_spoken(servers, converse):
    thinker = servers(Thinker, answers(s3={"tts_control": STOP, "tts": "不"}))
    run = converse(thinker)
    assert {facts["status"] for facts in slice_facts(run.trace)} == {"spoken"}
    assert of_kind(run.trace, "control")[0]["input_seq"] == 3
    assert run.result["text"] == "词0词1词2不"


@pytest.mark.realtime
def test_sound_that_a_stop_overtakes_is_dropped(servers, converse):
    """Arrival clock, talker 0.3 s late: slice 2's sound is still being made when slice 3 stops."""
    thinker = servers(Thinker, answers(s3={"tts_control": STOP, "tts": "不"}))
    talker = servers(Talker, delay_s=lambda index: 0.3 if index < 2 else 0.9 if index == 2 else 0)
    run = converse(thinker, talker, clock="arrival")
    status = [facts["status"] for facts in slice_facts(run.trace)]
    assert status == ["spoken"] * 2 + ["dropped"] + ["spoken"] * 7
    sounds = {line["input_seq"]: line for line in of_kind(run.trace, "audio")}
    assert 2 not in sounds
    wav, _ = soundfile.read(run.out / "assistant_audio.wav", dtype="int16")
    assert np.count_nonzero(wav == tone(2)) == 0
    assert sum(line["samples"] for line in sounds.values()) == 9 * SLICE_OUT
