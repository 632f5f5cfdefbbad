"""Every dialect against its reference service, honest and misbehaving (service.py)."""

from __future__ import annotations

import json

import numpy as np
import pytest
import soundfile

from hfd.duplex.model import ModelBroken
from hfd.errors import HfdError
from hfd.models.sockets.failures import SampleFailure
from tests.models.realtime.conftest import KEY

pytestmark = pytest.mark.realtime

DIALECTS = ["openai", "qwen", "openai_live", "gemini"]
SAID = "Hello 你好 there"


def wav(run):
    sound, rate = soundfile.read(run.out / "assistant_audio.wav", dtype="int16")
    assert rate == 24_000
    return np.abs(sound.astype(int))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_an_answer_is_recorded_with_its_voice_and_its_times(talk, dialect):
    run = talk(dialect, pictures=10)
    assert run.result["text"] == ("Hello" if dialect == "openai_live" else SAID)
    assert run.result["clock"] == "arrival" and run.result["voice_origin"] == "native_talker"
    assert 0.5 <= run.result["first_audio_s"] < 1.0
    assert np.count_nonzero(wav(run) > 33) / 24_000 == pytest.approx(1.0, abs=0.02)
    due = {line["unit"]: line["due"] for line in run.trace if line["kind"] == "input"}
    for line in run.trace:
        if line["kind"] in ("text", "audio"):
            assert line["t"] >= due[line["input_seq"]]
    detail = run.provenance["model"]["detail"]
    assert detail["black_box"] and detail["audio_only"]
    assert detail["full_duplex"] == ("native" if dialect == "openai_live" else "vad_gated")
    ends = {"openai_live": "input_clock_stopped", "qwen": "server_done"}
    assert run.result["end_reason"] == ends.get(dialect, "idle")
    assert run.end["wire_lag_ms"]["max"] < 500 and not run.result["truncated"]


@pytest.mark.parametrize("dialect", ["openai", "qwen", "gemini"])
def test_video_frames_go_along_at_their_rate(talk, dialect):
    run = talk(dialect, frame_fps=1, pictures=12)
    assert run.end["frames_sent"] == 3  # at 0, 1 and 2 s
    taken = [line["taken"] for line in run.trace if line["kind"] == "input" if line["taken"]]
    assert taken == [[0], [5], [10]]
    assert not run.provenance["model"]["detail"]["audio_only"]


def test_a_burst_of_ten_seconds_plays_ten_seconds(talk):
    run = talk("openai", "burst_10", drain_max_s=4.0)  # which it outlives: nothing is lost
    arrivals = run.result["audio_arrivals"]
    assert arrivals[-1]["t"] - arrivals[0]["t"] < 0.5
    assert np.count_nonzero(wav(run) > 33) > 9.9 * 24_000 * 0.98
    assert run.result["end_s"] - run.result["first_audio_s"] == pytest.approx(10, abs=0.02)


def test_a_stalled_continuous_stream_is_back_in_time_after_its_next_silence(talk):
    run = talk("openai_live", "stall_300", pictures=14)
    assert run.end["stall_ms_max"] > 200
    assert 200 < run.end["silence_absorbed_ms"] < 700  # and what came a little early
    assert np.count_nonzero(wav(run) > 33) > 0.98 * 24_000  # no sound was dropped
    last = run.result["audio_arrivals"][-1]
    assert last["play_at_s"] + last["samples"] / 24_000 - last["t"] < 0.1 + 0.06


@pytest.mark.parametrize("mode", ["barge_in", "silent_cancel"])
def test_a_barge_in_cuts_when_its_signal_arrives_and_reports_what_was_heard(talk, mode):
    run = talk("openai", mode, pictures=8)
    (cut,) = [c for c in run.result["controls"] if c["control"] == "interrupt"]
    (report,) = run.end["heard"]["cuts"]
    assert cut["cleared"] > 4 * 24_000
    played_ms = (cut["t"] - run.result["first_audio_s"]) * 1000
    assert report["heard_ms"] == pytest.approx(played_ms, abs=60)
    assert report["heard_ms"] < report["audio_ms"] == 6000
    assert run.end["unknown_events"]["conversation.item.truncated"] == 1
    assert run.end["late_sounds_dropped"] >= 1
    assert len(wav(run)) <= (cut["t"] + 0.5) * 24_000


def test_gemini_is_cut_by_its_own_signal_and_told_nothing(talk):
    run = talk("gemini", "barge_in", pictures=8)
    (cut,) = [c for c in run.result["controls"] if c["control"] == "interrupt"]
    assert cut["cleared"] > 4 * 24_000
    assert run.end["heard"]["model_believes"] == "all_sent"


def test_silence_is_a_result(talk):
    run = talk("openai", "silent", pictures=3)
    assert run.result["status"] == "no_response" and run.result["end_reason"] == "idle"


def test_a_sample_split_over_two_messages_is_joined(talk):
    run = talk("openai", "odd_bytes")
    assert np.count_nonzero(wav(run)) > 0.95 * 24_000
    assert wav(run).max() <= 9000


def test_what_is_unknown_or_harmless_is_counted(talk):
    run = talk("openai", "unknown", pictures=5)
    assert run.end["unknown_events"]["something.new"] == 1 and run.result["text"] == SAID
    run = talk("openai", "benign_error", pictures=5)
    assert run.end["unknown_events"]["error response_cancel_not_active"] == 1


def test_an_answer_that_outlives_an_input_clock_is_truncated(talk):
    run = talk("openai_live", "long", pictures=6)
    assert run.result["truncated"] and run.result["end_reason"] == "input_clock_stopped"


def test_a_server_that_announces_its_end_is_heard_of(talk):
    assert talk("gemini", "go_away").end["going_away"] == 1


FAILURES = [
    *(
        (dialect, mode, reason)
        for dialect in ("openai", "openai_live", "gemini")
        for mode, reason in (
            ("close_1000", "server_socket_lost: closed in order before"),
            ("close_1011", "server_socket_lost: .*1011"),
            ("drop", "server_socket_lost"),
            ("garbage", "server_protocol"),
            ("huge", "server_too_big"),
        )
    ),
    ("openai", "close_1008", "server_socket_lost: .*1008"),
    ("openai", "binary", "server_protocol"),
    ("openai", "error", "server_error: server_error"),
    ("openai_live", "error", "server_error: server_error"),
    ("openai", "stalled", "server_stalled"),
    ("gemini", "stalled", "server_stalled"),
    ("openai", "never_done", "never_ended"),
]


def no_key_is_left(folder):
    """Nothing that a run leaves holds the key."""
    for path in folder.rglob("*"):
        if path.is_file():
            assert KEY.encode() not in path.read_bytes(), path


@pytest.mark.parametrize(("dialect", "mode", "reason"), FAILURES)
def test_a_misbehaving_server_fails_the_sample_by_name_and_leaves_no_key(
    talk, tmp_path, dialect, mode, reason
):
    with pytest.raises(SampleFailure, match=f"^{reason}") as caught:
        talk(dialect, mode, pictures=4, record=True, drain_max_s=2.0)
    assert not (tmp_path / "out" / "result.json").exists()
    assert KEY not in str(caught.value)
    no_key_is_left(tmp_path)


REFUSALS = [
    ("http_401", "server_refused: HTTP 401"),
    ("http_429", "server_busy: HTTP 429"),
    ("refused", "server_refused: invalid_api_key"),
    ("other_session", "server_refused: the session has truncation = 'auto', not 'disabled'"),
    ("mute", "server_connect_failed: no session within"),
]


@pytest.mark.parametrize(("mode", "reason"), REFUSALS)
def test_a_refusal_is_the_servers_fault_and_shows_no_key(talk, tmp_path, mode, reason):
    with pytest.raises(ModelBroken, match=f"^{reason}") as caught:
        talk("openai", mode, pictures=3, record=True, setup_s=60 if mode != "mute" else 0.5)
    assert KEY not in str(caught.value)
    no_key_is_left(tmp_path)


def test_a_service_that_is_not_there_is_tried_three_times(talk, monkeypatch):
    pauses = []
    monkeypatch.setattr("hfd.models.realtime.time.sleep", pauses.append)
    with pytest.raises(ModelBroken, match=r"^server_connect_failed"):
        talk("openai", url="ws://127.0.0.1:9/v1/realtime", pictures=3)
    assert len(pauses) == 2


def test_recorded_messages_hold_what_was_said_and_no_key(talk, tmp_path):
    run = talk("openai", record=True, pictures=4)
    text = (run.out / "side" / "raw_frames.jsonl").read_text(encoding="utf-8")
    frames = [json.loads(line) for line in text.splitlines()]
    sent = [json.loads(f["text"])["type"] for f in frames if f["dir"] == "out"]
    assert sent[0] == "session.update" and sent.count("input_audio_buffer.append") == 8
    assert KEY not in text and "Bearer" not in text
    assert KEY not in (run.out / "provenance.json").read_text()


def test_a_key_that_a_server_echoes_is_left_nowhere(talk, tmp_path):
    run = talk("openai", "echo_key", record=True, pictures=4)
    assert run.result["status"] == "ok" and "debug <hidden>" in run.end["unknown_events"]
    assert "ephemeral" not in (run.out / "provenance.json").read_text()
    no_key_is_left(tmp_path)


def test_without_its_key_nothing_is_connected(talk, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(HfdError, match="environment variable OPENAI_API_KEY is not set"):
        talk("openai")


def test_a_file_beyond_the_services_limit_is_refused_before_anything_is_sent(talk):
    with pytest.raises(HfdError, match=r"takes at most 1\.0 s"):
        talk("gemini", max_media_s=1.0, pictures=6)


def test_warm_up_opens_a_session_of_its_own(talk):
    run = talk("openai", "silent", pictures=3, warmup=True)
    assert run.result["status"] == "no_response"


# -- vLLM-Omni's input clock (a double of ours: no released server has it) ------------------------


def test_with_an_input_clock_times_are_virtual_and_dependences_are_known(talk):
    run = talk("vllm_omni", pictures=40, input_clock="require")
    assert run.result["clock"] == "virtual" and run.end["input_acknowledged"]
    assert run.end["session_s"] < 8  # the length of the media
    audio = run.result["audio_arrivals"]
    assert [a["input_seq"] for a in audio] == [1, 2]
    assert 2.05 <= audio[0]["t"] < 3.05 <= audio[1]["t"] < 4.05  # its unit, and the compute
    assert run.result["rtf"]["compute_s"] >= 8 * 0.05
    assert run.end["server_silence_units"] == 0


def test_with_acknowledgements_in_real_time_dependences_are_known_too(talk):
    run = talk("vllm_omni", pictures=20, input_clock="try")
    assert run.result["clock"] == "arrival" and run.end["input_acknowledged"]
    assert [a["input_seq"] for a in run.result["audio_arrivals"]] == [1, 2]


def test_a_server_that_ignores_the_input_clock_is_noticed(talk):
    with pytest.raises(SampleFailure, match="server_protocol: unit 0 was not acknowledged"):
        talk("vllm_omni", "no_clock", pictures=10, input_clock="require")
