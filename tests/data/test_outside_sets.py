"""Importers of outside sets, on made-up rows in their layouts."""

import json
from pathlib import Path

import pytest
import soundfile

import import_set
from hfd.data.adapter import read_adapter
from hfd.data.check import Subject, check_sample
from hfd.data.compiled_tracks import read_sound
from hfd.data.manifest import read_manifest
from hfd.data.outside_sets import SETS
from hfd.errors import HfdError
from tests.data import outside_rows

MAKERS = {
    "full-duplex-bench": outside_rows.full_duplex_bench,
    "humdial": outside_rows.humdial,
    "easy-turn": outside_rows.easy_turn,
}


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """Every set, imported: its samples by id."""
    found = {}
    for name, make in MAKERS.items():
        root = tmp_path_factory.mktemp(name)
        out = root / "数据"
        import_set.main(
            ["--set", name, "--from", str(make(root / "set")), "--out", str(out)]
        )  # fmt: skip
        found |= {s.sample_id: s for s in read_manifest(out / "manifest.jsonl", root)}
    return found


def test_every_sample_passes_the_projects_own_check(imported):
    assert sorted(imported) == [
        "easyturn-incomplete-incomplete_real_0", "easyturn-incomplete-incomplete_real_1",
        "fdb-candor_pause_handling-12", "fdb-synthetic_pause_handling-3",
        "fdb-synthetic_user_interruption-1", "humdial-zh-pause-0007_0001",
    ]  # fmt: skip
    for sample in imported.values():
        subject = Subject(
            sample.sample_id, sample.task, sample.video, sample.adapter, sample.duration_seconds
        )
        verdict = check_sample(subject)
        assert verdict["status"] == "ok", verdict["findings"]


def test_the_sound_is_the_sets_sound_with_three_silent_seconds(imported):
    sample = imported["humdial-zh-pause-0007_0001"]
    pcm = read_sound(sample.video)
    source = sample.video.parents[2] / "set/test/cn_test_nondev/pause/0007_0001.wav"
    wanted = soundfile.read(source, dtype="int16")[0]
    assert (pcm[: len(wanted)] == wanted).all() and not pcm[len(wanted) :].any()
    assert sample.duration_seconds == 11.0


def test_pauses_become_the_gap_between_two_questions(imported):
    adapter = read_adapter(imported["fdb-candor_pause_handling-12"].adapter)
    assert (adapter.p1, adapter.q0) == (2.0, 3.0)
    assert adapter.p0 == pytest.approx(0.5, abs=0.15)
    assert adapter.q1 == pytest.approx(4.5, abs=0.4)
    assert (adapter.first.spoken_text, adapter.second.text) == ("so", "yes")
    longest = read_adapter(imported["fdb-synthetic_pause_handling-3"].adapter)
    assert (longest.p1, longest.q0) == (2.4, 3.6)
    humdial = imported["humdial-zh-pause-0007_0001"]
    broken = read_adapter(humdial.adapter)
    assert (broken.p0, broken.p1, broken.q0, broken.q1) == (0.4, 1.9, 3.1, 4.6)
    assert broken.first.spoken_text == "帮我" and humdial.row["speaker"] == "humdial-zh-0007"


def test_rows_say_what_is_scored_in_which_seconds(imported):
    def scores(name):
        return imported[name].row["scores"]

    assert scores("fdb-candor_pause_handling-12") == {"fdb_pause_tor": [0.0, 5.0]}
    assert scores("fdb-synthetic_user_interruption-1") == {"fdb_interruption_tor": [6.0, 9.0]}
    assert scores("humdial-zh-pause-0007_0001") == {"wait_held": [0.4, 3.1]}
    start, end = scores("easyturn-incomplete-incomplete_real_0")["wait_held"]
    assert start == pytest.approx(0.3, abs=0.15) and end == pytest.approx(4.5, abs=0.3)


def test_an_incomplete_clip_asks_nothing(imported):
    sample = imported["easyturn-incomplete-incomplete_real_1"]
    adapter = read_adapter(sample.adapter)
    assert adapter.qend is None and adapter.row["events"][0]["text"] == "因为小时候"
    assert "speaker" not in sample.row


@pytest.mark.parametrize("name", list(SETS))
def test_a_folder_without_the_set_is_told_what_it_should_hold(name, tmp_path):
    with pytest.raises(HfdError, match=r"holds no samples.*It should have"):
        SETS[name](tmp_path)


def broken(root: Path, name: str) -> tuple[str, str]:
    """Break a made-up set; return the set and what must be said."""
    if name == "no pause.json":
        outside_rows.full_duplex_bench(root)
        next(root.glob("**/pause.json")).unlink()
        return "full-duplex-bench", "pause.json is missing"
    if name == "inverted":
        outside_rows.full_duplex_bench(root)
        outside_rows.write(next(root.glob("**/pause.json")), [{"timestamp": [3, 2]}])
        return "full-duplex-bench", "3 to 2 s is empty or inverted"
    if name == "no timestamps":
        outside_rows.humdial(root)
        next(root.glob("**/*_timestamp.json")).unlink()
        return "humdial", "0007_0001_timestamp.json is missing"
    outside_rows.easy_turn(root)
    path = next(root.glob("**/*.list"))
    path.write_text(json.dumps({"key": "x", "wav": "gone.wav", "txt": "x"}), encoding="utf-8")
    return "easy-turn", "gone.wav is missing"


@pytest.mark.parametrize("name", ["no pause.json", "inverted", "no timestamps", "no wav"])
def test_a_broken_set_is_one_error_that_names_the_file(name, tmp_path):
    which, message = broken(tmp_path, name)
    with pytest.raises(HfdError) as caught:
        SETS[which](tmp_path)
    assert message in str(caught.value) and str(tmp_path) in str(caught.value)


@pytest.mark.parametrize("odd", ["no break", "no gap"])
def test_a_request_without_an_annotated_gap_is_imported_and_not_scored(odd, tmp_path, capsys):
    outside_rows.humdial(tmp_path / "set")
    if odd == "no break":
        path = next(tmp_path.glob("**/0007_0001.json"))
        path.write_text(path.read_text().replace("[break] ", ""), encoding="utf-8")
    else:
        path = next(tmp_path.glob("**/*_timestamp.json"))
        outside_rows.write(path, {"chunks": [{"text": "x", "timestamp": [0.4, 4.6]}]})
    out = tmp_path / "out"
    import_set.main(["--set", "humdial", "--from", str(tmp_path / "set"), "--out", str(out)])
    (sample,) = read_manifest(out / "manifest.jsonl", tmp_path)
    assert sample.row["scores"] == {} and "not scored" in capsys.readouterr().out
    adapter = read_adapter(sample.adapter)
    assert adapter.first is None and adapter.qend == 4.6


def test_a_manifest_that_is_there_is_not_overwritten(tmp_path):
    source = outside_rows.easy_turn(tmp_path / "set")
    arguments = ["--set", "easy-turn", "--from", str(source), "--out", str(tmp_path / "out")]
    import_set.main(arguments)
    with pytest.raises(HfdError, match="is there already"):
        import_set.main(arguments)
