"""Prefix invariance: an online model passes, one that reads ahead in the file is found out."""

import json

import numpy as np
import pytest

import prefix_probe
from hfd.data.media import to_int16
from hfd.judge.reference import decode_sound
from hfd.stream.events import Audio, Text
from hfd.stream.reader import read_units
from hfd.stream.run import Run
from tests.judge.world import HOP, Mute, Talker


class Peeker(Talker):
    """Reads the whole file before it starts; its first word tells how loud the end is."""

    def open(self, sample, emit):
        super().open(sample, emit)
        video = sample.scratch.parent.with_suffix(".mp4")
        sound = decode_sound(video).astype(np.float64)
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


def probe(model_class, world, tmp_path):
    model = model_class({"silence_s": 0.4})
    run = Run("m", "m", {}, 1, model.load())
    return prefix_probe.probe(model, run, world.samples[5], tmp_path)


@pytest.mark.parametrize(
    ("model", "status"),
    [(Talker, "pass"), (Peeker, "fail"), (Moody, "not_evidenced"), (Mute, "not_evidenced")],
)
def test_a_model_that_reads_ahead_fails_and_an_honest_one_passes(model, status, world, tmp_path):
    verdict = probe(model, world, tmp_path)
    assert verdict.status == status, verdict


def test_the_changed_file_differs_from_the_original_only_after_t(world, tmp_path):
    video = world.samples[5].video
    sound = decode_sound(video)
    end = 4.0
    changed = tmp_path / "changed.mp4"
    prefix_probe.with_sound(video, prefix_probe.changed_after(sound, end), changed)
    differs = False
    for old, new in zip(read_units(video, 1280), read_units(changed, 1280), strict=True):
        assert [f.digest() for f in old.frames] == [f.digest() for f in new.frames]
        same = np.array_equal(to_int16(old.pcm), to_int16(new.pcm))
        assert same or old.t0 >= end - 1e-9
        differs = differs or not same
    assert differs


def test_the_command_writes_a_verdict_that_the_audit_reads(world, tmp_path, monkeypatch):
    from hfd.judge.probe import probe_verdict
    from hfd.work.spec import ModelSpec

    monkeypatch.setattr(prefix_probe, "create_model", lambda module, settings: Talker(settings))
    out = tmp_path / "talker.json"
    spec = ModelSpec("talker", "talker", {"silence_s": 0.4}).to_json()
    prefix_probe.main(
        ["--spec", spec, "--manifest", str(world.root / "data/manifest.jsonl"),
         "--root", str(world.root), "--samples", "2", "--scratch", str(tmp_path / "s"),
         "--out", str(out)]
    )  # fmt: skip
    assert probe_verdict(out).status == "pass"
    assert len(json.loads(out.read_text())["evidence"]["by_sample"]) == 2
