"""The embedded default through the real session, spoken to by its own voice."""

import gzip
import json
import subprocess

import imageio_ffmpeg
import numpy as np
import pytest
import soundfile
import soxr

from hfd.data.manifest import Sample
from hfd.errors import HfdError
from hfd.files import sha256_file
from hfd.models.cascade.dialogue import NOT_UNDERSTOOD, Dialogue
from hfd.models.cascade.recogniser import Recogniser
from hfd.models.cascade.settings import Settings
from hfd.models.cascade.turns import TurnDetector
from hfd.models.cascade.voice import HOP, RATE, Voice
from hfd.models.registry import create_model
from hfd.models.settings import make_settings
from hfd.stream.run import Run
from hfd.stream.session import run_sample

PREFIX = "I would like to know the weather in"
CORRECTION = "How many bicycles are in the picture?"


@pytest.fixture(scope="module")
def model():
    made = create_model("cascade", {})
    made.identity = made.load()
    return made


@pytest.fixture(scope="module")
def say():
    """A spoken sentence as float32 at 16 kHz."""
    voice = Voice()
    return lambda text: soxr.resample(voice.say(text, [1]), RATE, 16000)


@pytest.fixture
def converse(model, tmp_path):
    """Stream sound, in pieces of samples or seconds of silence, through the real session."""

    def run(*pieces, folder="out"):
        pcm = np.concatenate([silence(p) if isinstance(p, float) else p for p in pieces])
        pcm = np.pad(pcm, (0, -len(pcm) % 3200))
        out = tmp_path / folder
        out.mkdir()
        video = compiled_file(tmp_path / f"{folder}.mp4", pcm)
        sample = Sample("sample", "other", video, None, len(pcm) / 16000, {}, 1)
        shared = Run("cascade", "cascade", {}, 0, model.identity)
        return run_sample(model, shared, sample, out, fingerprint="f" * 64), out

    return run


def silence(seconds):
    return np.zeros(round(seconds * 16000), np.float32)


def compiled_file(path, pcm):
    wav = path.with_suffix(".wav")
    soundfile.write(wav, pcm, 16000)
    # fmt: off
    subprocess.run(
        [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-nostdin",
         "-f", "lavfi", "-i", f"color=size=64x48:rate=5:duration={len(pcm) / 16000}", "-i", wav,
         "-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "flac", "-strict", "-2", path],
        check=True,
    )
    # fmt: on
    return path


def lines(out, kind):
    with gzip.open(out / "trace.jsonl.gz") as trace:
        return [line for line in map(json.loads, trace) if line["kind"] == kind]


@pytest.mark.realtime
def test_a_long_pause_is_taken_for_the_end_and_the_correction_interrupts_and_is_answered(
    converse, say
):
    prefix, correction = say(PREFIX), say(CORRECTION)
    p1 = 0.5 + len(prefix) / 16000
    gap = 2.2  # long enough to be answered in also on a busy machine, too short for all of it
    q0, q1 = p1 + gap, p1 + gap + len(correction) / 16000
    result, out = converse(0.5, prefix, gap, correction, 3.0)

    assert p1 + 0.5 < result["first_token_s"] < q0
    (cut,) = [c for c in result["controls"] if c["control"] == "interrupt"]
    assert q0 < cut["t"] < q0 + 0.8 and cut["cleared"] > 0
    answer = "".join(e["delta"] for e in result["text_events"] if e["t"] > q1)
    assert answer.strip().startswith("Sorry,")
    assert "bicycles" in answer and "weather" not in answer
    # What was not yet played is gone from the wav: it is silent until the answer.
    track, rate = soundfile.read(out / "assistant_audio.wav", dtype="int16")
    assert not track[round(cut["t"] * rate) + 1 : round(q1 * rate)].any()
    assert track[round(q1 * rate) :].any()


def test_a_pause_shorter_than_the_endpoint_is_waited_through(converse, say):
    prefix, correction = say(PREFIX), say(CORRECTION)
    q1 = 0.5 + len(prefix) / 16000 + 0.3 + len(correction) / 16000
    result, out = converse(0.5, prefix, 0.3, correction, 3.0)

    assert result["first_token_s"] > q1
    heard = lines(out, "metric")[-1]["values"]["text"]
    assert "weather" in heard and "bicycles" in heard


def test_text_and_sound_leave_sentence_by_sentence_and_the_voice_can_be_understood(converse, say):
    result, out = converse(0.5, say("Is the man in the middle wearing a hat?"), 3.0)

    assert len(result["text_events"]) >= 2
    chunks = lines(out, "audio")
    assert len(chunks) == len(result["text_events"])
    assert all(chunk["samples"] % HOP == 0 for chunk in chunks)
    pcm, rate = soundfile.read(out / "assistant_audio.wav", dtype="float32")
    heard = Recogniser().transcribe(soxr.resample(pcm, rate, 16000)).text.lower()
    assert "wearing a hat" in heard


def test_the_last_word_is_not_lost_when_the_file_ends_in_speech(converse, say):
    result, _ = converse(0.5, say(CORRECTION))
    assert "bicycles" in result["text"] and result["first_token_s"] >= result["media_s"]


def test_speech_that_is_no_english_is_admitted_not_guessed(converse, demo_folder):
    chinese, rate = soundfile.read(demo_folder / "raw/audio/希望.wav", dtype="float32")
    assert rate == 16000
    result, _ = converse(0.5, chinese, 3.0)
    assert result["text"] == " ".join(NOT_UNDERSTOOD)


def test_silence_and_noise_are_answered_with_silence(converse):
    noise = np.random.default_rng(1).normal(0, 0.01, 48000).astype(np.float32)
    result, out = converse(noise, 1.0)
    assert result["status"] == "no_response" and result["text"] == ""
    assert not soundfile.read(out / "assistant_audio.wav")[0].any()


def test_a_sample_does_not_depend_on_the_one_before_it_and_repeats_bit_for_bit(converse, say):
    first, first_out = converse(0.5, say(PREFIX), 2.0, folder="first")
    converse(0.5, say(CORRECTION)[:8000], folder="cut in mid-word")
    again, again_out = converse(0.5, say(PREFIX), 2.0, folder="again")

    assert again["text"] == first["text"]
    sounds = [[chunk["pcm"] for chunk in lines(out, "audio")] for out in (first_out, again_out)]
    assert sounds[0] == sounds[1] != []


def test_the_identity_names_every_weight_file_by_its_hash(model):
    files = model.identity.detail["files"]
    for part in (TurnDetector, Recogniser, Voice):
        assert part.weights()
        assert all(files[path.name] == sha256_file(path) for path in part.weights())
    assert {"model.bin", "hibari.onnx"} <= set(files)
    assert len(model.identity.weights) == 64


@pytest.mark.parametrize(
    ("settings", "field"),
    [
        ({"endpoint": 700}, "settings.endpoint"),
        ({"endpoint_ms": 0}, "settings.endpoint_ms"),
        ({"onset_ms": True}, "settings.onset_ms"),
        ({"vad_threshold": "0.5"}, "settings.vad_threshold"),
        ({"min_logprob": float("nan")}, "settings.min_logprob"),
    ],
)
def test_an_impossible_setting_is_refused_by_name(settings, field):
    with pytest.raises(HfdError) as caught:
        make_settings(Settings, settings)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("heard", "words"),
    [
        ("What is your dog doing to my car?", "what is my dog doing to your car"),
        ("What colour is it? No wait, how many are there?", "how many are there"),
        ("I think you are wrong about me.", "I am wrong about you"),
        ("Mr. Smith was here.", "mr smith was here"),
    ],
)
def test_a_reply_turns_the_last_thing_heard_to_the_speaker(heard, words):
    reply = " ".join(Dialogue(0).answer(heard, after_interruption=False))
    assert words in reply


def test_a_question_about_the_picture_is_answered_with_the_truth():
    for seed in range(8):
        reply = " ".join(Dialogue(seed).answer("How many men are there?", after_interruption=False))
        assert "see no pictures" in reply or "cannot see" in reply
