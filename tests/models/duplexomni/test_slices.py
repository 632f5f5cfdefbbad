"""Text, sound and trace of every slice, through the real session."""

from __future__ import annotations

import base64
import io
import random
from itertools import pairwise

import numpy as np
import pytest
import soundfile
from PIL import Image

from hfd.duplex.events import Audio, Metric, Text
from hfd.models.duplexomni.wire import to_slice
from hfd.pcm import to_int16
from hfd.stream.reader import read_units
from tests.fakes.duplexomni import (
    SLICE_OUT,
    Talker,
    Thinker,
    dict_text,
    hashed_answer,
    tone,
)
from tests.models.duplexomni.conftest import drive, of_kind, slice_facts, units
from tests.stream.clips import number_of

SLICES = 10


def pcm_of(line):
    return np.frombuffer(base64.b64decode(line["pcm"]), "<i2")


@pytest.mark.parametrize("clock", ["virtual", pytest.param("arrival", marks=pytest.mark.realtime)])
def test_with_random_empty_slices_text_wav_and_trace_agree_on_every_slice(servers, converse, clock):
    empty = set(random.Random(clock).sample(range(SLICES), 4))
    thinker = servers(Thinker)
    talker = servers(Talker, silent=empty.__contains__)
    run = converse(thinker, talker, clock=clock)
    texts, sounds = of_kind(run.trace, "text"), of_kind(run.trace, "audio")
    facts = slice_facts(run.trace)
    assert [line["input_seq"] for line in texts] == list(range(SLICES))
    assert [line["input_seq"] for line in sounds] == list(range(SLICES))
    wav, rate = soundfile.read(run.out / "assistant_audio.wav", dtype="int16")
    assert rate == 24000
    for index in range(SLICES):
        said = hashed_answer(index, thinker.requests[index].messages)
        assert facts[index]["reply"] == said
        assert texts[index]["delta"] in said and texts[index]["delta"].startswith(f"<{index}:")
        expected = 0 if index in empty else tone(index)
        assert facts[index]["status"] == ("empty" if index in empty else "spoken")
        assert np.all(pcm_of(sounds[index]) == expected) and len(pcm_of(sounds[index])) == SLICE_OUT
        at = sounds[index]["play_at"]
        assert np.all(wav[at : at + SLICE_OUT] == expected)
    assert [turn.index for turn in talker.heard] == list(range(SLICES))
    assert len({turn.session for turn in talker.heard}) == 1
    assert talker.forgotten == [talker.heard[0].session]


@pytest.mark.realtime
def test_a_run_of_slices_lies_on_exact_multiples_of_11520_from_its_causal_start(servers, converse):
    jitter = random.Random(1)
    delays = [0.6] + [jitter.uniform(0, 0.05) for _ in range(SLICES - 1)]
    thinker = servers(Thinker, delay_s=lambda index: delays[index])
    run = converse(thinker)
    sounds = of_kind(run.trace, "audio")
    first = sounds[0]
    assert first["t"] >= 0.48 + 0.6
    assert first["play_at"] == round(first["t"] * 24000)
    for k, line in enumerate(sounds):
        assert line["play_at"] == first["play_at"] + SLICE_OUT * k
        assert line["play_at"] >= round(line["t"] * 24000)
    assert sum(line["samples"] for line in sounds) == SLICES * SLICE_OUT
    assert run.result["segments"] == [
        {
            "start": first["play_at"] / 24000,
            "end": (first["play_at"] + SLICES * SLICE_OUT) / 24000,
        }
    ]
    assert run.provenance["output_stream"]["underrun_s"] == 0


@pytest.mark.realtime
def test_a_slice_slower_than_all_before_it_opens_a_gap_and_is_never_moved_earlier(
    servers, converse
):
    thinker = servers(Thinker, delay_s=lambda index: 0.6 if index == 5 else 0.01)
    run = converse(thinker)
    sounds = of_kind(run.trace, "audio")
    assert sounds[5]["play_at"] == round(sounds[5]["t"] * 24000)
    assert sounds[5]["play_at"] > sounds[4]["play_at"] + SLICE_OUT
    for earlier, later in pairwise(sounds[5:]):
        assert later["play_at"] == earlier["play_at"] + SLICE_OUT
    assert run.provenance["output_stream"]["underrun_s"] > 0.2


@pytest.mark.realtime
def test_both_times_of_a_slice_are_kept_and_no_output_precedes_its_slice(servers, converse):
    run = converse(
        servers(Thinker, delay_s=lambda _: 0.02), servers(Talker, delay_s=lambda _: 0.03)
    )
    assert run.result["clock"] == "virtual"
    sounds = of_kind(run.trace, "audio")
    for index, facts in enumerate(slice_facts(run.trace)):
        assert facts["logical_s"] == pytest.approx(0.48 * (index + 1))
        assert 0.02 <= facts["thinker_s"] < 1 and 0.03 <= facts["talker_s"] < 1
        assert sounds[index]["t"] >= facts["logical_s"] + 0.05


@pytest.mark.realtime
def test_with_the_arrival_clock_the_talker_works_beside_the_next_slice(servers, converse):
    """Thinker 0.3 s and talker 0.3 s keep up with 0.48 s slices only side by side: one after the
    other they would be 1.8 s late in the tenth slice."""
    run = converse(
        servers(Thinker, delay_s=lambda _: 0.3),
        servers(Talker, delay_s=lambda _: 0.3),
        clock="arrival",
    )
    sounds = of_kind(run.trace, "audio")
    for index, line in enumerate(sounds):
        assert 0.6 <= line["t"] - 0.48 * (index + 1) < 1.2
    assert run.provenance["input_stream"]["lag_ms"]["max"] < 400


def test_outputs_before_a_change_of_the_input_do_not_depend_on_it(model_of, tmp_path):
    """Slices 0-11 are the same in both files, everything after differs."""

    def said(new_after):
        events = drive(model_of(), units(18, new_after=new_after), tmp_path)
        return [
            (event.input_seq, event.delta if isinstance(event, Text) else event.pcm.tobytes())
            for event in events
            if isinstance(event, Text | Audio)
        ]

    one, other = said(new_after=None), said(new_after=12)
    assert [item for item in one if item[0] < 12] == [item for item in other if item[0] < 12]
    assert [item for item in one if item[0] == 12] != [item for item in other if item[0] == 12]


def test_the_thinker_gets_the_files_own_samples_and_the_whole_history(servers, converse):
    thinker = servers(Thinker)
    run = converse(thinker)
    assert len(thinker.requests) == SLICES
    for request in thinker.requests:
        pcm, rate = soundfile.read(io.BytesIO(request.wav), dtype="int16")
        assert rate == 16000 and len(pcm) == 7680
        assert request.messages == thinker.requests[-1].messages[: len(request.messages)]
    replies = [m["content"] for m in thinker.requests[-1].messages if m["role"] == "assistant"]
    assert replies == [facts["reply"] for facts in slice_facts(run.trace)][:-1]


def test_the_sound_sent_is_the_decoded_file_bit_for_bit(servers, converse, compiled):
    thinker = servers(Thinker)
    converse(thinker)
    sent = [soundfile.read(io.BytesIO(r.wav), dtype="int16")[0] for r in thinker.requests]
    file = [to_int16(unit.pcm) for unit in read_units(compiled("24.mp4", 24), 7680)]
    assert np.array_equal(np.concatenate(sent), np.concatenate(file))


def test_one_slice_in_four_carries_the_last_picture_not_after_its_start(
    model_of, servers, tmp_path
):
    """Slice 4 starts at 1.92 s: frame 9 (1.8 s), not 10; slice 20 starts on frame 48."""
    thinker = servers(Thinker)
    events = drive(model_of(thinker), units(24), tmp_path)
    sent = {
        index: number_of(np.asarray(Image.open(io.BytesIO(request.picture))))
        for index, request in enumerate(thinker.requests)
        if request.picture
    }
    assert sent == {0: 0, 4: 9, 8: 19, 12: 28, 16: 38, 20: 48}
    facts = [event for event in events if isinstance(event, Metric) and event.name == "slice"]
    assert {
        f.input_seq: f.values["picture"] for f in facts if f.values["picture"] is not None
    } == sent


def test_the_picture_rule_and_its_size_are_settings(model_of, servers, tmp_path):
    thinker = servers(Thinker)
    model = model_of(thinker, picture_interval=2, picture_long_side=96)
    drive(model, units(5), tmp_path)
    pictures = [request.picture for request in thinker.requests]
    assert [picture is not None for picture in pictures] == [True, False, True, False, True]
    assert Image.open(io.BytesIO(pictures[2])).size == (96, 72)
    rule = model.capabilities.frame_rule
    assert rule.period == 2 * 7680 and rule.size.pixels == 96


def test_a_slices_sound_keeps_its_ends_and_fills_the_slice():
    """The rule of the authors' clients; tests/peers compares with their own function."""
    wave = np.linspace(-20000, 20000, 10965).astype(np.int16)
    placed = to_slice(wave)
    assert len(placed) == SLICE_OUT and placed.dtype == np.int16
    assert (placed[0], placed[-1]) == (wave[0], wave[-1])
    assert np.all(np.diff(placed.astype(int)) >= 0)
    assert placed[5760] == 1  # 5760 / 11519 of the way, cut toward zero


def test_the_prompt_the_sound_rule_and_the_talkers_own_sound_are_on_record(converse):
    run = converse()
    detail = run.provenance["model"]["detail"]
    assert "耐心听用户说完" in detail["system_prompt"] and detail["s2_system_prompt"] is None
    assert detail["sound_rule"].startswith("10965 samples of a slice")
    assert all(len(facts["talker_sha256"]) == 64 for facts in slice_facts(run.trace))


def test_a_slice_in_which_the_model_writes_nothing_stands_in_the_history_as_the_authors_send_it(
    servers, converse
):
    texts = {2: "", 3: " \n{'tts': 'x'} "}
    thinker = servers(Thinker, lambda index, _: texts.get(index, dict_text()))
    run = converse(thinker)
    history = [m["content"] for m in thinker.requests[-1].messages if m["role"] == "assistant"]
    assert history[2] == "{}" and history[3] == "{'tts': 'x'}"
    assert [facts["reply"] for facts in slice_facts(run.trace)][2:4] == [texts[2], texts[3]]


def test_a_model_that_stays_silent_gives_a_valid_result_without_words(servers, converse):
    thinker = servers(Thinker, lambda index, messages: dict_text())
    run = converse(thinker, servers(Talker, silent=lambda index: True))
    assert run.result["status"] == "no_response" and run.result["text"] == ""
    assert run.result["end_reason"] == "input_end"


def test_words_in_the_last_slice_are_marked_as_perhaps_cut_by_the_end_of_the_input(converse):
    run = converse()
    assert run.result["end_reason"] == "input_end_while_speaking"


def test_an_unreadable_answer_invents_no_words_and_is_counted(servers, converse):
    texts = {3: "I cannot do that", 4: "{'tts': "}
    thinker = servers(Thinker, lambda index, _: texts.get(index, dict_text(tts=f"w{index}")))
    run = converse(thinker)
    assert run.result["text"] == "w0w1w2w5w6w7w8w9"
    assert run.trace[-1]["unreadable_slices"] == 2
    assert slice_facts(run.trace)[3]["reply"] == "I cannot do that"
    assert thinker.requests[4].messages[-2]["content"] == "I cannot do that"
