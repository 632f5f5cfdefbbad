"""The client against vLLM-Omni's and Moshi's own servers, with nothing faked but the network."""

from __future__ import annotations

import json

import numpy as np
import pytest
import soundfile

from hfd.duplex.model import ModelBroken
from hfd.models.sockets.failures import SampleFailure
from tests.models.realtime.conftest import run_model
from tests.models.realtime.peers.conftest import moshi_settings, vllm_omni_settings
from tests.stream.conftest import compiled  # noqa: F401  a fixture

pytestmark = [pytest.mark.heavy, pytest.mark.realtime]


@pytest.fixture
def run(compiled, tmp_path, monkeypatch):  # noqa: F811
    """One sample with given settings."""
    monkeypatch.chdir(tmp_path)

    def start(settings, pictures):
        out = tmp_path / f"out{len(list(tmp_path.iterdir()))}"
        out.mkdir()
        video = compiled(f"{pictures}.mp4", pictures)
        return run_model(settings, video, out, pictures / 5)

    return start


# -- vLLM-Omni -----------------------------------------------------------------------------------


def test_vllm_omni_answers_over_several_units(run, vllm_omni, ref_audio):
    result = run(vllm_omni_settings(vllm_omni, ref_audio, record=True), 40)
    assert result.result["text"] == "hello " * 5
    assert result.end["listen_decisions"] == 3 and result.end["speak_decisions"] >= 1
    assert result.end["server_silence_units"] == 0 and result.end["frames_sent"] == 8
    # Two units were heard, the third is answered: not before it was there, and soon after.
    assert 3.0 < result.result["first_audio_s"] < 3.5
    first = result.result["audio_arrivals"][0]
    assert first["input_seq"] == 2 and first["samples"] == 24_000
    wav, _ = soundfile.read(result.out / "assistant_audio.wav", dtype="int16")
    assert np.count_nonzero(np.abs(wav.astype(int)) > 33) > 0.95 * 5 * 24_000
    detail = result.provenance["model"]["detail"]
    assert detail["implementation_level"] == "model_native_duplex"
    assert detail["full_duplex"] == "native" and detail["turn_taking"] == "model"


def test_vllm_omni_is_told_what_was_played_and_its_secret_is_withheld(run, vllm_omni, ref_audio):
    result = run(vllm_omni_settings(vllm_omni, ref_audio, record=True), 40)
    text = (result.out / "side" / "raw_frames.jsonl").read_text(encoding="utf-8")
    frames = [json.loads(line) for line in text.splitlines()]
    events = [json.loads(f["text"]) for f in frames if f["dir"] == "in"]
    (known,) = [e for e in events if e["type"] == "playback.acknowledged"]
    assert known["event"]["played_ms"] == known["event"]["committed_ms"] == 5000
    (created,) = [e for e in events if e["type"] == "session.created"]
    assert created["resume_token"] == "<hidden>"
    assert events[-1]["type"] == "session.closed"


def test_silence_that_the_server_gives_its_model_by_itself_is_counted(run, vllm_omni, ref_audio):
    result = run(vllm_omni_settings(vllm_omni, ref_audio), 20)
    assert result.end["server_silence_units"] == 3  # 4 units sent, 7 answered
    assert result.result["end_s"] > result.result["media_s"] + 3
    assert not result.result["truncated"]


def test_a_setting_that_vllm_omni_refuses_is_its_own_error(run, vllm_omni, ref_audio):
    settings = vllm_omni_settings(vllm_omni, ref_audio, attempts=1)
    del settings["ref_audio"]
    with pytest.raises(ModelBroken, match="server_refused: "):
        run(settings, 5)
    changed = vllm_omni_settings(vllm_omni, ref_audio, turn_detection={"type": "nothing_known"})
    with pytest.raises(ModelBroken, match=r"server_refused: .*turn_detection"):
        run(changed, 5)


def test_a_server_without_the_input_clock_is_noticed(run, vllm_omni, ref_audio):
    settings = vllm_omni_settings(vllm_omni, ref_audio, input_clock="require", stall_s=2.0)
    with pytest.raises(SampleFailure, match="server_protocol: unit 0 was not acknowledged"):
        run(settings, 10)
    tried = run(vllm_omni_settings(vllm_omni, ref_audio, input_clock="try"), 20)
    assert not tried.end["input_acknowledged"] and tried.result["clock"] == "arrival"


# -- Moshi ---------------------------------------------------------------------------------------


def test_moshi_gives_one_frame_for_each_but_the_first(run, moshi):
    result = run(moshi_settings(moshi, record=True), 20)
    assert result.provenance["input_stream"]["units"] == 50
    samples = sum(a["samples"] for a in result.result["audio_arrivals"])
    absorbed = round(result.end["silence_absorbed_ms"] * 24)
    assert samples + absorbed == 49 * 1920
    assert result.result["end_reason"] == "input_clock_stopped"
    assert result.result["text"] and result.end["unknown_events"] == {}
    assert result.provenance["model"]["detail"]["input_resampled"].startswith("soxr")


def test_moshi_takes_one_sample_after_another(run, moshi):
    one, two = run(moshi_settings(moshi), 5), run(moshi_settings(moshi), 5)
    assert one.result["status"] == two.result["status"] == "ok"
