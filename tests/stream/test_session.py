"""The session with small honest models: times, trace, results."""

import base64
import gzip
import hashlib
import json
import threading
import time

import numpy as np
import pytest
import soundfile

from hfd.data.manifest import Sample
from hfd.duplex.events import Audio, Control, ControlKind, Metric, Text
from hfd.duplex.model import Capabilities, DuplexModel, Identity
from hfd.errors import HfdError
from hfd.stream.run import Run
from hfd.stream.session import run_sample


class Parrot(DuplexModel):
    """Says one word per second it heard, 0.3 s long, after `think_s` of compute."""

    def __init__(self, settings):
        self.clock = settings.get("clock", "virtual")
        self.think_s = settings.get("think_s", 0.0)

    @property
    def capabilities(self):
        return Capabilities(16000, 24000, self.clock, "native_talker")

    def load(self):
        return Identity("parrot", None)

    def open(self, sample, emit):
        self.emit = emit
        emit(Metric("prefix", {"tokens": 3}))

    def push(self, unit):
        time.sleep(self.think_s)
        self.emit(Text(f"字{unit.index} "))
        self.emit(Audio(np.full(7200, 0.25, np.float32)))

    def finish(self):
        return {"end_reason": "turn_end"}


class Mute(Parrot):
    def push(self, unit):
        pass


class Chatty(Parrot):
    """Says many words for each unit."""

    def push(self, unit):
        for _ in range(50):
            super().push(unit)


class Interrupted(Parrot):
    """Speaks 2 s at once in unit 0, and is interrupted in unit 1."""

    def push(self, unit):
        if unit.index == 0:
            self.emit(Audio(np.full(48000, 1000, np.int16)))
        if unit.index == 1:
            self.emit(Control(ControlKind.INTERRUPT, {"why": "user"}))


@pytest.fixture(scope="module")
def sample(compiled):
    path = compiled("session.mp4", 16)  # 3.2 s
    return Sample("样本 1", "other", path, None, 3.2, {}, 1)


def run(model_class, sample, out, **settings):
    model = model_class(settings)
    shared = Run("parrot", "parrot", settings, 1, model.load(), max_lag_s=0.2)
    out.mkdir()
    result = run_sample(model, shared, sample, out, fingerprint="f" * 64)
    return result, read_trace(out)


def read_trace(out):
    with gzip.open(out / "trace.jsonl.gz", "rb") as lines:
        return [line.rstrip(b"\n") for line in lines]


def rebuilt(lines, media_samples):
    track = np.zeros(0, "<i2")
    for line in map(json.loads, lines):
        if line["kind"] == "audio":
            pcm = np.frombuffer(base64.b64decode(line["pcm"]), "<i2")
            end = line["play_at"] + len(pcm)
            track = np.pad(track, (0, max(0, end - len(track))))
            track[line["play_at"] : end] = pcm
        elif "cut_at" in line:
            track = track[: line["cut_at"]]
    return np.pad(track, (0, max(0, media_samples - len(track))))


@pytest.mark.parametrize("model", [Parrot, Mute, Interrupted])
def test_the_wav_is_rebuilt_bit_for_bit_from_the_trace(sample, tmp_path, model):
    _, lines = run(model, sample, tmp_path / "out")
    wav, rate = soundfile.read(tmp_path / "out" / "assistant_audio.wav", dtype="int16")
    assert rate == 24000
    assert np.array_equal(wav, rebuilt(lines, round(3.2 * 24000)))


def test_every_line_carries_the_hash_of_the_line_before(sample, tmp_path):
    _, lines = run(Parrot, sample, tmp_path / "out")
    prev = "0" * 64
    for n, line in enumerate(lines):
        record = json.loads(line)
        assert record["prev"] == prev and record["seq"] == n
        prev = hashlib.sha256(line).hexdigest()
    provenance = json.loads((tmp_path / "out" / "provenance.json").read_text())
    whole = hashlib.sha256((tmp_path / "out" / "trace.jsonl.gz").read_bytes()).hexdigest()
    assert provenance["trace"] == {"lines": len(lines), "tail": prev, "sha256": whole}


@pytest.mark.realtime
def test_virtual_time_is_the_inputs_end_plus_measured_compute(sample, tmp_path):
    result, _ = run(Parrot, sample, tmp_path / "out", think_s=0.1)
    times = [event["t"] for event in result["text_events"]]
    assert np.allclose(times, [1.1, 2.1, 3.1, 4.1], atol=0.04)
    assert 0.4 <= result["rtf"]["compute_s"] < 0.6


@pytest.mark.realtime
def test_a_model_slower_than_the_media_falls_behind_on_the_virtual_clock(sample, tmp_path):
    result, _ = run(Parrot, sample, tmp_path / "out", think_s=1.2)
    times = [event["t"] for event in result["text_events"]]
    assert np.allclose(times, [2.2, 3.4, 4.6, 5.8], atol=0.1)


def test_no_output_comes_before_the_input_it_depends_on(sample, tmp_path):
    _, lines = run(Parrot, sample, tmp_path / "out")
    due = {}
    for line in map(json.loads, lines):
        if line["kind"] == "input":
            due[line["unit"]] = line["due"]
            assert line["t"] >= line["due"] - 1e-3
        elif line["kind"] in ("text", "audio"):
            assert line["t"] >= due[line["input_seq"]] - 1e-3


@pytest.mark.parametrize("clock", ["virtual", pytest.param("arrival", marks=pytest.mark.realtime)])
def test_a_model_that_speaks_from_another_thread_never_turns_time_back(sample, tmp_path, clock):
    class Threaded(Parrot):
        def push(self, unit):
            def talk():
                for _ in range(60):
                    self.emit(Audio(np.full(2400, 0.1, np.float32)))

            talker = threading.Thread(target=talk)
            talker.start()
            for _ in range(60):
                self.emit(Metric("step", {"n": 1}))
            talker.join()

    _, lines = run(Threaded, sample, tmp_path / "out", clock=clock)
    times = [json.loads(line)["t"] for line in lines]
    assert times == sorted(times)


def test_a_machine_that_pauses_anywhere_never_turns_time_back(sample, tmp_path, monkeypatch):
    pauses, now = np.random.default_rng(1), [0.0]

    def paused():
        now[0] += float(pauses.exponential(0.01))
        return now[0]

    monkeypatch.setattr("hfd.stream.clock.time.perf_counter", paused)
    _, lines = run(Chatty, sample, tmp_path / "out")
    times = [json.loads(line)["t"] for line in lines]
    assert len(times) > 100 and times == sorted(times)


@pytest.mark.realtime
def test_in_real_time_units_are_sent_at_absolute_deadlines_and_none_early(sample, tmp_path):
    result, lines = run(Parrot, sample, tmp_path / "out", clock="arrival", think_s=0.05)
    inputs = [line for line in map(json.loads, lines) if line["kind"] == "input"]
    for line in inputs:
        assert 0 <= line["t"] - line["due"] < 0.1
    assert result["clock"] == "arrival" and result["rtf"]["compute_s"] is None


@pytest.mark.realtime
def test_a_late_sender_is_a_failed_sample_never_a_silent_result(sample, tmp_path):
    with pytest.raises(HfdError, match="not online"):
        run(Parrot, sample, tmp_path / "out", clock="arrival", think_s=1.5)
    assert not (tmp_path / "out" / "result.json").exists()


def test_silence_is_a_valid_result_with_a_silent_wav(sample, tmp_path):
    result, _ = run(Mute, sample, tmp_path / "out")
    wav, _ = soundfile.read(tmp_path / "out" / "assistant_audio.wav", dtype="int16")
    assert result["status"] == "no_response" and result["text"] == ""
    assert len(wav) == 3.2 * 24000 and not wav.any()


@pytest.mark.realtime
def test_an_interruption_drops_what_was_not_played_and_says_how_much(sample, tmp_path):
    result, _ = run(Interrupted, sample, tmp_path / "out")
    cut = next(c for c in result["controls"] if c["control"] == "interrupt")
    assert abs(cut["cut_at"] - 48000) < 480 and abs(cut["cleared"] - 24000) < 480
    assert result["segments"][-1]["end"] == cut["cut_at"] / 24000


def test_speech_that_outlives_the_media_is_kept_whole(sample, tmp_path):
    class Late(Parrot):
        def finish(self):
            self.emit(Audio(np.full(48000, 500, np.int16)))
            return {}

    result, _ = run(Late, sample, tmp_path / "out")
    wav, _ = soundfile.read(tmp_path / "out" / "assistant_audio.wav", dtype="int16")
    assert np.count_nonzero(wav == 500) == 48000
    assert result["end_s"] == len(wav) / 24000 > 5.2


def test_a_file_longer_than_the_model_takes_is_refused_before_it_is_opened(sample, tmp_path):
    class Short(Parrot):
        @property
        def capabilities(self):
            return Capabilities(16000, 24000, "virtual", "native_talker", max_media_s=3.0)

        def open(self, sample, emit):
            raise AssertionError("must not be reached")

    with pytest.raises(HfdError, match=r"session\.mp4.*at most 3\.0 s"):
        run(Short, sample, tmp_path / "out")


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (Audio(np.array([np.nan], np.float32)), "NaN"),
        (Audio(np.zeros((2, 9), np.float32)), "shape"),
        (Audio(np.zeros(9, np.float64)), "float64"),
        (Text("x", input_seq=99), "not pushed yet"),
    ],
)
def test_events_that_cannot_be_true_stop_the_sample(sample, tmp_path, event, reason):
    class Wrong(Parrot):
        def push(self, unit):
            self.emit(event)

    with pytest.raises(ValueError, match=reason):
        run(Wrong, sample, tmp_path / "out")


def test_two_runs_of_a_deterministic_model_say_the_same(sample, tmp_path):
    one, _ = run(Parrot, sample, tmp_path / "one")
    two, _ = run(Parrot, sample, tmp_path / "two")
    assert one["text"] == two["text"]
    provenance = [
        json.loads((tmp_path / name / "provenance.json").read_text()) for name in ("one", "two")
    ]
    assert provenance[0]["input"] == provenance[1]["input"]
    assert str(tmp_path) not in json.dumps(provenance)
