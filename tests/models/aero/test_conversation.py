"""The client against an honest pair of servers and against every way one can misbehave."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import soundfile
import yaml

from hfd.duplex.model import ModelBroken
from hfd.errors import HfdError
from hfd.models.tts.protocol import FRAME_SAMPLES

pytestmark = pytest.mark.realtime

ROOT = Path(__file__).parents[3]
SAID = "你好, this is 一句话 said token by token"


def test_an_honest_pair_speaks_while_it_listens(honest):
    run = honest
    assert run.result["status"] == "ok" and run.result["text"] == SAID
    assert run.result["voice_origin"] == "streaming_tts" and run.result["clock"] == "arrival"
    assert run.result["end_reason"] == "server_done" and not run.result["truncated"]
    first_sound, last_text = run.result["first_audio_s"], run.result["text_events"][-1]["t"]
    assert run.result["first_token_s"] < first_sound < last_text
    assert run.end["deltas"] == 12 and run.end["late_deltas"] == 0
    assert run.end["pictures_sent"] == 2 and run.end["unknown_events"] == {}


def test_every_sample_of_every_frame_arrives(honest):
    run = honest
    frames = run.end["tts"]["frames"]
    assert frames == 24  # two for each token
    assert run.provenance["output_stream"]["samples"] == frames * FRAME_SAMPLES
    assert {a["samples"] for a in run.result["audio_arrivals"]} == {FRAME_SAMPLES}
    wav, _ = soundfile.read(run.out / "assistant_audio.wav", dtype="int16")
    assert np.count_nonzero(np.abs(wav.astype(int)) > 100) > 0.9 * frames * FRAME_SAMPLES


def test_each_sound_depends_only_on_text_that_had_come_and_units_that_were_sent(honest):
    run = honest
    due = {line["unit"]: line["due"] for line in run.trace if line["kind"] == "input"}
    text_seq = -1
    outputs = [line for line in run.trace if line["kind"] in ("text", "audio")]
    for line in outputs:
        assert line["t"] >= due[line["input_seq"]]
        if line["kind"] == "text":
            text_seq = line["input_seq"]
        assert line["input_seq"] <= text_seq
    assert outputs[0]["input_seq"] == 2  # the server named the slot


def test_the_forward_delay_of_every_delta_is_on_record(honest):  # its bar: test_minute.py
    run = honest
    delays = [
        line["values"]["delay_ms"]
        for line in run.trace
        if line["kind"] == "metric" and line["name"] == "forward"
    ]
    assert len(delays) == 12
    assert run.end["forward_delay_ms"]["p50"] == pytest.approx(np.median(delays), abs=0.01)


def test_speech_goes_on_after_the_file_is_over_and_is_not_cut(talk):
    run = talk(pictures=5, slots="2-11")
    media_s = run.result["media_s"]
    assert run.result["end_s"] > media_s + 0.5
    assert run.provenance["wav"]["samples"] > media_s * 24000
    assert run.end["tts"]["frames"] == 20


def test_an_answer_that_runs_into_the_end_of_the_file_is_called_truncated(talk):
    assert talk(pictures=5, slots="2-12").result["truncated"]


def test_a_session_id_that_the_server_issues_goes_back_with_every_unit(talk, tmp_path):
    content = yaml.safe_load((ROOT / "config" / "wires" / "aero.yaml").read_text("utf-8"))
    content["receive"]["values"] = {"session": ["session.id"]}
    for message in [*content["send"]["unit"], *content["send"]["done"]]:
        message["session"] = "{session}"
    (tmp_path / "wire.yaml").write_text(yaml.safe_dump(content), "utf-8")
    assert talk("ids_needed", wire=str(tmp_path / "wire.yaml")).result["text"] == SAID


def test_silence_is_a_result(talk):
    run = talk(pictures=3, slots="900-901")
    assert run.result["status"] == "no_response" and run.result["text"] == ""
    assert run.end["tts"]["frames"] == 0
    wav, _ = soundfile.read(run.out / "assistant_audio.wav", dtype="int16")
    assert len(wav) == 0.6 * 24000 and not wav.any()


def test_two_answers_with_a_pause_between_are_two_utterances(talk):
    run = talk(slots="3-5,14-16", pictures=8, utterance_gap_s=0.4)
    utterances = run.end["tts"]["utterances"]
    assert [u["tokens"] for u in utterances] == [3, 3]
    # Until the gap is over, speech goes on: with up to 0.4 s of frames that have no text.
    assert all(6 <= u["frames"] <= 6 + 5 for u in utterances)
    controls = [c["control"] for c in run.result["controls"]]
    assert controls == ["speak", "turn_end"] * 2


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("quiet_end", {"end_reason": "idle_timeout", "final_events": 0}),
        ("just_close", {"end_reason": "server_closed", "final_events": 0}),
        ("big", {"end_reason": "server_done", "unknown_events": {"debug.dump": 1}}),
        ("spelling", {"end_reason": "server_done", "deltas": 12}),
    ],
)
def test_servers_that_are_odd_but_complete_give_a_result(talk, mode, expected):
    run = talk(mode)
    assert run.result["text"] == SAID
    assert {key: run.end[key] for key in expected} == expected


def test_markers_and_empty_deltas_are_counted_and_neither_stored_nor_spoken(talk):
    run = talk("markers")
    assert run.result["text"] == SAID
    assert run.end["marker_deltas"] == 4 and run.end["empty_deltas"] == 2
    assert run.end["final_events"] == 3  # duplicates
    assert run.end["tts"]["frames"] == 24


def test_half_characters_are_counted_and_not_spoken(talk):
    run = talk("half")
    assert run.end["lossy_deltas"] == 6
    assert run.result["text"].count("\ufffd") == 6
    assert sum(utterance["tokens"] for utterance in run.end["tts"]["utterances"]) == 6


def test_half_characters_are_joined_where_the_server_tells_token_ids(talk, tmp_path):
    vocab = tmp_path / "vocab.json"
    vocab.write_text(json.dumps({"çĮ": 0, "«": 1}))  # byte-level symbols of e7 8c and ab
    run = talk("ids", slots="2-12", vocab=str(vocab))
    assert run.result["text"] == "猫" * 5
    assert run.end["lossy_deltas"] == 1  # the eleventh token's other half never came


def test_a_server_that_sends_bursts_is_recorded_as_one(talk):
    run = talk("bursts")
    assert run.end["largest_burst"] >= 6
    assert run.result["first_token_s"] >= 12 * 0.08


def test_a_stall_of_three_seconds_is_late_in_the_result_and_not_hidden(talk):
    run = talk("stall", pictures=24, slots="14-20")
    assert run.result["text"] and run.result["first_token_s"] >= 13 * 0.08 + 3
    assert run.result["text_events"][0]["input_seq"] == 14


@pytest.mark.parametrize(
    ("mode", "tts", "reason"),
    [
        ("after_done", "", "not_online"),
        ("drop", "", "aero_socket_lost"),
        ("error", "", "aero_error: error: no slot"),
        ("eager", "", "aero_protocol"),
        ("honest", "?mode=odd", "tts_protocol"),
        ("honest", "?mode=overlap", "tts_protocol"),
        ("honest", "?mode=foresight", "tts_protocol: .*not sent"),
        ("honest", "?mode=silent", "tts_stalled"),
        ("honest", "?mode=done_at_once", "tts_incomplete: it ended the session before"),
        ("honest", "?mode=one_of_two", "tts_incomplete: it spoke 1 of 2 utterances"),
        ("honest", "?mode=hole", "tts_incomplete: its speech ends with text 2 of"),
        ("foreign", "", r"aero_unknown_events: .*speech\.piece \(7\).*mend the wire file"),
        ("foreign_final", "", "aero_unknown_events"),
        ("chatter", "", "never_ended"),
        ("honest", "?mode=tts_drop", "tts_socket_lost"),
        ("honest", "?mode=tts_error", "tts_error: oom"),
    ],
)
def test_a_misbehaving_server_fails_the_sample_by_name(talk, tmp_path, mode, tts, reason):
    with pytest.raises(HfdError, match=f"^{reason}"):
        slots = "1-2,9-9" if "one_of_two" in tts else "2-8"
        limits = {"drain_max_s": 1.0} if mode == "chatter" else {"utterance_gap_s": 0.3}
        talk(mode, tts=tts, pictures=4, slots=slots, **limits)
    assert not (tmp_path / "out" / "result.json").exists()


def test_a_server_that_is_not_there_is_a_clear_error(talk):
    with pytest.raises(ModelBroken, match=r"^aero_connect_failed"):
        talk(url="ws://127.0.0.1:9/v1/aero/realtime", pictures=3)


def test_raw_frames_of_both_sockets_can_be_recorded(talk):
    run = talk(record=True, pictures=3, slots="1-2")
    lines = (run.out / "side" / "raw_frames.jsonl").read_text(encoding="utf-8").splitlines()
    frames = [json.loads(line) for line in lines]
    assert {(f["peer"], f["dir"]) for f in frames} == {
        (peer, direction) for peer in ("aero", "tts") for direction in ("in", "out")
    }
    sent = [json.loads(f["text"])["type"] for f in frames if f["dir"] == "out" and "text" in f]
    assert sent.count("input.audio.append") == 8 and sent[-2:] == ["input.flush", "input.done"]
