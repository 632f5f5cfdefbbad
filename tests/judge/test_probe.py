"""The probes: who reads ahead in the file is found out, who remembers its beginning is proven."""

import json

import numpy as np
import pytest

import probe
from hfd.data.altered import with_sound
from hfd.data.compiled_tracks import read_sound
from hfd.duplex.events import Audio, Text
from hfd.judge.probe import Probes, read_probes, read_tails, rerun_of
from hfd.judge.rules import judge_model
from hfd.judge.rules.rule import SetCase
from hfd.judge.sample import Record
from hfd.judge.trace import read_trace
from hfd.judge.verdict import Verdict, passed, unknown
from hfd.pcm import to_int16
from hfd.probes import run
from hfd.probes.bench import Bench
from hfd.probes.changed_sound import KINDS, changed_between
from hfd.stream.reader import read_units
from hfd.stream.run import Run
from tests.judge.world import HOP, Mute, Talker


class Peeker(Talker):
    """Reads the whole file before it starts; its first word tells how loud the end is."""

    def open(self, sample, emit):
        super().open(sample, emit)
        video = sample.scratch.parent.with_suffix(".mp4")
        sound = read_sound(video).astype(np.float64)
        self.secret = f"{np.abs(sound[-60_000:]).mean():.0f} "

    def push(self, unit):
        if unit.index == 10:
            self.emit(Text(self.secret))
            self.emit(Audio(np.full(HOP, 900, np.int16)))
        super().push(unit)


class Moody(Talker):
    """Says something else every time: not deterministic."""

    def open(self, sample, emit):
        super().open(sample, emit)
        self.random = np.random.default_rng()


class Remembering(Talker):
    """The last word of its answer tells how loud the last seconds were, or the whole file."""

    seconds = 1000.0

    def open(self, sample, emit):
        super().open(sample, emit)
        self.sound = np.zeros(0, np.float32)

    def push(self, unit):
        self.sound = np.concatenate([self.sound, unit.pcm])
        super().push(unit)

    def finish(self):
        self.emit(Text(f"{np.abs(self.sound[-round(16000 * self.seconds) :]).sum():.0f}"))
        self.emit(Audio(np.full(HOP, 900, np.int16)))
        return super().finish()


class Cropping(Remembering):
    """Forgets what it heard 3 s ago, whatever its growing numbers say."""

    seconds = 3.0


class Counting(Cropping):
    """As forgetful; a word each second carries the loudness so far on."""

    def push(self, unit):
        super().push(unit)
        if unit.index % 12 == 0:
            self.emit(Text(f"{np.abs(self.sound).sum():.0f} "))


def run_probe(kind, model_class, world, tmp_path):
    model = model_class({"silence_s": {"prefix": 0.4, "needle": 2.0}[kind]})
    bench = Bench(model, Run("m", "m", {}, 1, model.load()), tmp_path, tmp_path)
    return KINDS[kind](bench, world.samples[5])


@pytest.mark.parametrize(
    ("model", "status"),
    [(Talker, "pass"), (Peeker, "fail"), (Moody, "not_evidenced"), (Mute, "not_evidenced")],
)
def test_a_model_that_reads_ahead_fails_and_an_honest_one_passes(model, status, world, tmp_path):
    verdict = run_probe("prefix", model, world, tmp_path)
    assert verdict.status == status, verdict


@pytest.mark.parametrize(
    ("model", "status", "said"),
    [
        (Remembering, "pass", "the context reaches back"),
        (Cropping, "not_evidenced", "changes no word of the answer"),
        (Counting, "not_evidenced", "too near to tell"),
        (Moody, "not_evidenced", "not deterministic"),
        (Mute, "not_evidenced", "said nothing after the last question"),
    ],
)
def test_only_a_model_that_remembers_the_beginning_is_proven_to(
    model, status, said, world, tmp_path
):
    verdict = run_probe("needle", model, world, tmp_path)
    assert verdict.status == status and said in verdict.reason, verdict


def test_the_changed_file_differs_from_the_original_only_after_t(world, tmp_path):
    video = world.samples[5].video
    sound = read_sound(video)
    end = 4.0
    changed = tmp_path / "changed.mp4"
    with_sound(video, changed_between(sound, end, None), changed)
    differs = False
    for old, new in zip(read_units(video, 1280), read_units(changed, 1280), strict=True):
        assert [f.digest() for f in old.frames] == [f.digest() for f in new.frames]
        same = np.array_equal(to_int16(old.pcm), to_int16(new.pcm))
        assert same or old.t0 >= end - 1e-9
        differs = differs or not same
    assert differs


@pytest.mark.parametrize("span", [(0.0, 0.3), (0.0, 1.5), (4.0, None), (6.6, None)])
def test_a_changed_part_is_another_sound_and_the_rest_is_the_same(world, span):
    sound = read_sound(world.samples[5].video)
    changed = changed_between(sound, *span)
    differ = np.flatnonzero(sound != changed) / 16_000
    assert len(changed) == len(sound) and len(differ) > 1000
    assert span[0] <= differ[0] and differ[-1] < (span[1] or 1e9)


def needle(status):
    answer = Verdict(status, "found by the needle")
    return Probes(unknown("none"), answer)


@pytest.mark.parametrize(
    ("metric", "truncated", "probed", "status"),
    [
        (True, False, "not_evidenced", "pass"),
        (True, False, "pass", "pass"),
        (False, False, "pass", "pass"),
        (False, False, "not_evidenced", "not_evidenced"),
        (False, True, "pass", "not_evidenced"),
    ],
)
def test_the_needle_speaks_where_the_trace_reports_no_context(metric, truncated, probed, status):
    answer = passed("grew") if metric else unknown("no numbers")
    facts = {"clock": "virtual", "truncated": truncated, "text": ""}
    record = Record(
        "m", "s", "qa", "ok", "", {"A12": answer, "A14": passed("there")}, {}, {}, facts
    )
    found = judge_model(SetCase([record], [], None, needle(probed)))["A12"]
    assert found.status == status
    assert ("needle" in found.reason) == (not metric or probed == "pass")


@pytest.fixture
def probed(world, honest, tmp_path, monkeypatch):
    """A prefix probe of the honest results, as the command makes it."""
    monkeypatch.setattr(run, "make_model", lambda spec: Talker(spec.settings))
    entry = {"module": "test", "settings": {}, "voice_origin": "native_talker"}
    entry |= {"weights": [], "module_path": "", "sessions": 1}
    config = {"models": {"talker": entry}, "seed": 1, "rerun_on": []}
    monkeypatch.setenv("HFD_CONFIG", json.dumps(config))
    out = tmp_path / "prefix" / "talker.json"
    probe.main(
        ["prefix", "--model", "talker", "--manifest", str(world.root / "data/manifest.jsonl"),
         "--root", str(world.root), "--samples", "2", "--scratch", str(tmp_path / "s"),
         "--results", str(honest), "--nonce", "a word", "--out", str(out)]
    )  # fmt: skip
    return out


def test_a_probe_is_evidence_for_the_results_that_it_belongs_to_only(probed, honest):
    tails = read_tails(honest)
    stored = json.loads(probed.read_text())
    assert len(stored["evidence"]["by_sample"]) == 2
    for verdict in stored["evidence"]["by_sample"].values():
        assert verdict["evidence"]["rerun"]["status"] == "pass"

    def answer(tails=tails, nonce="a word"):
        return read_probes(probed.parents[1], "talker", tails, nonce).prefix

    assert answer().status == stored["status"] == "pass"
    assert "other results" in answer(tails | {"s03": "0" * 64}).reason
    assert "another nonce" in answer(nonce="").reason
    stored["bound"]["samples"] = stored["bound"]["samples"][::-1]
    probed.write_text(json.dumps(stored))
    assert "not drawn" in answer().reason and answer().status == "not_evidenced"
    del stored["bound"]
    probed.write_text(json.dumps(stored))
    assert "names no results" in answer().reason and answer().status == "not_evidenced"
    probed.write_text("[1]")
    assert answer().status == "not_evidenced"


def test_a_deterministic_model_must_say_again_what_was_delivered(honest, tmp_path):
    kept, other = (read_trace(honest / name / "trace.jsonl.gz") for name in ("s03", "s04"))
    assert rerun_of(kept, kept, kept, True).status == "pass"
    assert rerun_of(other, kept, kept, True).status == "fail"
    assert rerun_of(other, kept, kept, False).status == "not_evidenced"
    assert "not deterministic" in rerun_of(other, kept, other, True).reason
