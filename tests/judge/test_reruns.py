"""Probes that run a sample again: sound models notice nothing, planted ones are caught."""

import random
import time
from dataclasses import replace

import numpy as np
import pytest

import probe as probe_script
from hfd.data.altered import decoded, frozen_from, with_frames_of
from hfd.data.compiled_tracks import read_sound
from hfd.data.manifest import Sample
from hfd.duplex.events import Audio, Text
from hfd.duplex.model import Capabilities, DuplexModel, Identity
from hfd.errors import HfdError
from hfd.files import write_json
from hfd.jobs.spec import ModelSpec
from hfd.judge.noise_floor import noise_floor
from hfd.judge.probe import drawn, read_tails, tails_digest
from hfd.judge.rerun_files import read_reruns
from hfd.judge.sample import Record
from hfd.probes import disturbed, run
from hfd.probes.bench import Bench, bound_to
from hfd.stream.run import Run
from tests.judge.world import Talker, run_model
from tests.stream.clips import number_of
from tests.stream.conftest import compiled  # noqa: F401  a fixture


class Reader(DuplexModel):
    """Says the number of every second's first frame; its voice follows the seed."""

    clock = "virtual"

    def __init__(self):
        self.samples = 0

    @property
    def capabilities(self):
        return Capabilities(16_000, 16_000, self.clock, "native_talker")

    def load(self):
        return Identity("reader", None)

    def open(self, sample, emit):
        self.emit, self.seed = emit, sample.seed
        self.samples += 1

    def push(self, unit):
        self.emit(Text(f"{number_of(unit.taken[0].rgb)} "))
        self.emit(Audio(np.full(1600, 1000 + self.seed % 100, np.int16)))

    def finish(self):
        return {"end_reason": "input_done", "truncated": False}


class Leaky(Reader):
    """Counts the samples that it has heard."""

    def push(self, unit):
        super().push(unit)
        self.emit(Text(f"[{self.samples}]"))


class Clockwatcher(Reader):
    """Says when it is late by the wall clock."""

    def open(self, sample, emit):
        super().open(sample, emit)
        self.began = None

    def push(self, unit):
        super().push(unit)
        self.began = self.began or time.monotonic()
        if time.monotonic() - self.began > 0.05:
            self.emit(Text("late"))


class Server(Reader):
    clock = "arrival"


@pytest.fixture
def samples(compiled):  # noqa: F811
    return [
        Sample(name, "other", compiled(f"{name}.mp4", frames), None, frames / 5, {}, 1)
        for name, frames in (("a", 11), ("b", 16))
    ]


@pytest.fixture
def probe(samples, tmp_path):
    def run(model, kind):
        shared = Run("reader", "reader", {}, 3, model.load(), max_lag_s=2.0)
        bench = Bench(model, shared, tmp_path / kind, tmp_path, random.Random(1))
        return disturbed.KINDS[kind](bench, samples[0], samples)

    return run


@pytest.mark.parametrize("kind", ["pause", "cache", "neighbour"])
def test_a_sound_model_is_the_same_whatever_happens_around_it(probe, kind):
    found = probe(Reader(), kind)
    assert found["equal"] and found.get("other_equal", True), found


@pytest.mark.parametrize("kind", ["cache", "neighbour"])
def test_a_model_that_remembers_is_caught(probe, kind):
    found = probe(Leaky(), kind)
    assert not found["equal"] and "text" in found["differs_in"]


def test_a_model_that_looks_at_the_wall_clock_is_caught(probe, monkeypatch):
    monkeypatch.setattr(disturbed, "MOST_PAUSE_S", 0.3)
    assert "text" in probe(Clockwatcher(), "pause")["differs_in"]


def test_repeats_tell_the_seed_from_the_noise(probe):
    found = probe(Reader(), "repeat")
    assert found["same_seed_equal"] and not found["other_seed_equal"]
    assert len(found["onsets_s"]) == 3 and len(found["seeds"]) == 4


def test_a_model_that_looks_says_something_else_of_other_frames(probe):
    found = probe(Reader(), "vision")
    assert found["deterministic"]
    assert found["frozen_changes_text"] and not found["swapped_changes_text"]  # both count up


@pytest.mark.realtime
def test_jitter_keeps_its_schedule_and_loses_frames(probe):
    class Robust(Server):
        def push(self, unit):
            self.emit(Text(f"{len(unit.taken)} "))

    found = probe(Robust(), "jitter")
    assert found["status"] == "ok" and max(found["late_s"]) > 0
    assert found["differs_in"] == ["text", "deltas"]  # frames were lost


def test_frozen_and_foreign_frames_keep_the_sound_bit_for_bit(samples, tmp_path):
    source, other = samples[0].video, samples[1].video
    frozen_from(source, 1.0, tmp_path / "frozen.mp4")
    with_frames_of(other, source, tmp_path / "foreign.mp4")

    def shown(path):
        return [number_of(frame.to_ndarray(format="rgb24")) for frame in decoded(path)]

    assert shown(tmp_path / "frozen.mp4") == [0, 1, 2, 3, 4, 5, 5, 5, 5, 5, 5]
    assert shown(tmp_path / "foreign.mp4") == [*range(11), *[10] * 5]
    assert np.array_equal(read_sound(tmp_path / "frozen.mp4"), read_sound(source))
    assert np.array_equal(read_sound(tmp_path / "foreign.mp4"), read_sound(other))


def bound_to_results(samples, tails, nonce, count):
    return bound_to(tails, disturbed.candidates(samples, tails), nonce, count)


def results_of(count, tail="t"):
    samples = [Sample(str(k), "hesitation", None, None, 1.0, {}, k) for k in range(count)]
    return samples, {sample.sample_id: f"{tail}{k}" for k, sample in enumerate(samples)}


def test_samples_are_drawn_from_the_results_and_the_nonce():
    samples, tails = results_of(50)
    others = results_of(50, "other")[1]
    one = bound_to_results(samples, tails, "x", 4)["samples"]
    assert one == bound_to_results(samples, tails, "x", 4)["samples"] and len(one) == 4
    assert one != bound_to_results(samples, tails, "y", 4)["samples"]
    assert one != bound_to_results(samples, others, "x", 4)["samples"]


def test_hesitation_samples_with_a_result_come_before_others():
    samples, tails = results_of(6)
    mixed = [replace(s, task="qa") if k > 2 else s for k, s in enumerate(samples)]
    assert bound_to_results(mixed, tails, "x", 9)["from"] == ["0", "1", "2"]
    assert len(bound_to_results(mixed[2:], tails, "x", 9)["from"]) == 4  # one is too few
    with pytest.raises(HfdError, match="has 1 samples with a result"):
        bound_to_results(samples, {"3": "tail"}, "x", 2)


def written(folder, samples, tails, nonce="x", /, **change):
    bound = bound_to_results(samples, tails, nonce, 2)
    value = {"kind": "cache", "model": "m", "bound": bound}
    value |= {"samples": {name: {"equal": True} for name in bound["samples"]}} | change
    write_json(folder / "cache" / "m.json", value)
    return value


def test_a_rerun_is_evidence_for_the_results_that_it_belongs_to_only(tmp_path):
    samples, tails = results_of(9)
    stored = written(tmp_path, samples, tails)
    found = read_reruns(tmp_path, "m", samples, tails, "x")
    assert found == {"cache": stored["samples"]}

    def why(**more):
        asked = {"samples": samples, "tails": tails, "nonce": "x"} | more
        answer = read_reruns(tmp_path, "m", **asked)
        assert list(answer) == ["unbound"]
        return answer["unbound"]["cache"]

    assert "belongs to other results" in why(tails=tails | {"3": "made anew"})
    assert "another nonce" in why(nonce="y")
    chosen = {name: {"equal": True} for name in ("1", "2")}
    written(tmp_path, samples, tails, samples=chosen)
    assert "not drawn from the results' hash" in why()
    bound = stored["bound"] | {"samples": list(chosen)}
    written(tmp_path, samples, tails, samples=chosen, bound=bound)
    assert "not drawn from the results' hash" in why()
    few = {name: tails[name] for name in ("0", "1", "2")}
    part = bound_to_results(samples, few, "x", 2) | {"tails_sha256": tails_digest(tails)}
    part["samples"] = drawn(part["from"], tails_digest(tails), "x", 2)
    written(tmp_path, samples, tails, bound=part, samples={k: {} for k in part["samples"]})
    assert "from a part of the results" in why()
    for bad in ({"bound": None}, {"bound": {"nonce": "x"}}, {"samples": 3}):
        written(tmp_path, samples, tails, **bad)
        assert "no probe" in why() or "names no results" in why()


def test_the_probe_itself_draws_runs_and_compares_with_what_was_delivered(
    world, tmp_path, monkeypatch
):
    """One whole command, with the model that made the results and with one of another voice."""
    results = run_model(world, "rerun-delivered", seed=5)
    samples = world.samples
    wanted = bound_to_results(samples, read_tails(results), "w", 2)
    spec = ModelSpec("talker", "test", {"seed": 5}, 1)
    monkeypatch.setattr(probe_script.ModelSpec, "from_environment", lambda name: spec)
    for seed, same in ((5, True), (6, False)):
        monkeypatch.setattr(run, "make_model", lambda _, seed=seed: Talker({"seed": seed}))
        out = tmp_path / str(seed) / "cache" / "talker.json"
        probe_script.main(
            ["cache", "--model", "talker", "--manifest", str(world.root / "data/manifest.jsonl"),
             "--root", str(world.root), "--results", str(results), "--nonce", "w", "--samples",
             "2", "--scratch", str(tmp_path / str(seed) / "run"), "--out", str(out)]
        )  # fmt: skip
        found = read_reruns(out.parents[1], "talker", samples, read_tails(results), "w")["cache"]
        assert sorted(found) == sorted(wanted["samples"])
        assert {one["as_delivered"] for one in found.values()} == {same}


def test_the_noise_floor_is_the_largest_difference_of_equal_runs():
    def run(takes_over, latency):
        return [
            Record("m", str(k), "hesitation", "ok", "", {},
                   {"h1_gap_takeover": k < takes_over, "h9_response_s": latency + k}, {}, {})
            for k in range(4)
        ]  # fmt: skip

    found = noise_floor([run(1, 1.0), run(2, 1.5), run(1, 1.2)])
    assert found["floors"]["h1_gap_takeover"] == 0.25
    assert found["floors"]["h9_response_s"] == pytest.approx(0.5)
    assert found["flip_rate"] == pytest.approx(2 / 12)
    assert found["onset_spread_s"] == pytest.approx(0.5)
