"""Reading the manifest and the adapters."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from hfd.data.adapter import read_adapter
from hfd.data.manifest import read_manifest
from hfd.errors import HfdError

from .conftest import WriteManifest, manifest_row


def refusal(path: Path, root: Path) -> str:
    with pytest.raises(HfdError) as caught:
        read_manifest(path, root)
    return str(caught.value)


def test_a_good_row_keeps_its_unknown_keys(write_manifest: WriteManifest, tmp_path: Path) -> None:
    path = write_manifest("", manifest_row("甲 'x' %1", source={"site": "a"}))
    (sample,) = read_manifest(path, tmp_path)
    assert (sample.sample_id, sample.task, sample.line) == ("甲 'x' %1", "hesitation", 2)
    assert sample.video == tmp_path / "data/videos/a.mp4"
    assert sample.duration_seconds == 12.4
    assert sample.row["source"] == {"site": "a"}


def test_paths_may_be_relative_to_the_manifest_s_own_folder(
    write_manifest: WriteManifest, tmp_path: Path
) -> None:
    path = write_manifest(manifest_row("a", video="videos/a.mp4", adapter="adapters/a.json"))
    assert read_manifest(path, tmp_path)[0].video == tmp_path / "data/videos/a.mp4"


def test_id_is_accepted_for_sample_id(write_manifest: WriteManifest, tmp_path: Path) -> None:
    path = write_manifest(manifest_row("x", sample_id=None, id="b"))
    assert read_manifest(path, tmp_path)[0].sample_id == "b"


def test_a_byte_order_mark_and_windows_line_ends_are_accepted(
    write_manifest: WriteManifest, tmp_path: Path
) -> None:
    path = write_manifest(manifest_row("a"), manifest_row("b"))
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert [s.sample_id for s in read_manifest(path, tmp_path)] == ["a", "b"]


@pytest.mark.parametrize(
    "sample_id",
    [
        *("../x", "a/b", "a\\b", "", "  ", ".", "..", ".hidden", "con", "NUL.txt", "com1"),
        *("x" * 201, "é" * 101, "a\nb", "a\x00b", "a\u2028b", "{a}", "end.", " a", "a "),
    ],
)
def test_an_id_that_is_no_safe_file_name_is_refused(
    sample_id: str, write_manifest: WriteManifest, tmp_path: Path
) -> None:
    text = refusal(write_manifest(manifest_row("ok"), manifest_row(sample_id)), tmp_path)
    assert "manifest.jsonl:2: sample_id" in text
    assert len(text) < 400


@pytest.mark.parametrize("sample_id", ["-rf", "--x=1", "a b", "it's", '"q"', "100%", "[a]*?", "猫"])
def test_an_unusual_id_is_accepted(
    sample_id: str, write_manifest: WriteManifest, tmp_path: Path
) -> None:
    assert read_manifest(write_manifest(manifest_row(sample_id)), tmp_path)


@pytest.mark.parametrize(
    ("first", "second"), [("a", "a"), ("Clip", "cLIP"), ("caf\u00e9", "cafe\u0301")]
)
def test_two_ids_that_could_be_one_file_are_refused(
    first: str, second: str, write_manifest: WriteManifest, tmp_path: Path
) -> None:
    text = refusal(write_manifest(manifest_row(first), manifest_row(second)), tmp_path)
    assert "manifest.jsonl:2" in text and "line 1" in text


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"sample_id": 17}, "sample_id"),
        ({"id": "other"}, "sample_id"),
        ({"task": None}, "task"),
        ({"task": ""}, "task"),
        ({"video": None}, "video"),
        ({"video": "/etc/passwd"}, "video"),
        ({"video": "data/../../x.mp4"}, "video"),
        ({"video": "data/videos/absent.mp4"}, "video"),
        ({"video": "data/videos"}, "video"),
        ({"video": "a" * 3000}, "video"),
        ({"adapter": "data/adapters/absent.json"}, "adapter"),
        ({"duration_seconds": None}, "duration_seconds"),
        ({"duration_seconds": "12.4"}, "duration_seconds"),
        ({"duration_seconds": True}, "duration_seconds"),
        ({"duration_seconds": -1}, "duration_seconds"),
        ({"duration_seconds": 0}, "duration_seconds"),
        ({"duration_seconds": 12400000}, "duration_seconds"),
    ],
)
def test_a_bad_value_is_refused_with_its_line_and_field(
    changes: dict, field: str, write_manifest: WriteManifest, tmp_path: Path
) -> None:
    path = write_manifest(manifest_row("ok"), manifest_row("bad", **changes))
    assert f"manifest.jsonl:2: {field}: " in refusal(path, tmp_path)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("[1, 2]", "not an object"),
        ('"text"', "not an object"),
        ("{", "not valid JSON"),
        ('{"duration_seconds": NaN}', "NaN"),
        ('{"sample_id": "a", "sample_id": "b"}', "twice"),
        ("[" * 100_000, "nested"),
        ("[" + '{"a": 1},' * 1_200_000 + "]", "longer than"),
    ],
)
def test_a_line_that_is_no_json_object_is_refused(
    line: str, words: str, write_manifest: WriteManifest, tmp_path: Path
) -> None:
    text = refusal(write_manifest(manifest_row("ok"), line), tmp_path)
    assert "manifest.jsonl:2" in text and words in text
    assert len(text) < 400


@pytest.mark.parametrize("number", ["1e999", "9" * 400])
def test_a_number_beyond_all_floats_is_refused(
    number: str, write_manifest: WriteManifest, tmp_path: Path
) -> None:
    row = json.dumps(manifest_row("a")).replace("12.4", number)
    assert "duration_seconds" in refusal(write_manifest(row), tmp_path)


@pytest.mark.parametrize("content", [b"", b"\n\n", b"\xef\xbb\xbf"])
def test_an_empty_manifest_is_refused(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "m.jsonl").write_bytes(content)
    assert "has no rows" in refusal(tmp_path / "m.jsonl", tmp_path)


def test_a_missing_manifest_and_another_encoding_are_refused(tmp_path: Path) -> None:
    assert "missing" in refusal(tmp_path / "absent.jsonl", tmp_path)
    (tmp_path / "m.jsonl").write_text(json.dumps(manifest_row("a")), encoding="utf-16")
    assert "m.jsonl:1: is not UTF-8" in refusal(tmp_path / "m.jsonl", tmp_path)


@pytest.mark.realtime
def test_1024_rows_are_read_in_a_fraction_of_a_second(
    write_manifest: WriteManifest, tmp_path: Path
) -> None:
    path = write_manifest(*(manifest_row(f"sample {n}") for n in range(1024)))
    before = time.process_time()
    assert len(read_manifest(path, tmp_path)) == 1024
    assert time.process_time() - before < 0.2


def test_an_adapter_gives_the_four_positions_by_role(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    second = {"start": 4.5, "end": 6.25, "role": "second_question", "text": "b", "lane": 2}
    first = {"start": 1.0, "end": 2.5, "role": "first_question", "spoken_text": "a"}
    path.write_text(json.dumps({"events": [second, first], "team": "x"}))
    adapter = read_adapter(path)
    assert (adapter.p0, adapter.p1, adapter.q0, adapter.q1) == (1.0, 2.5, 4.5, 6.25)
    assert adapter.qend == 6.25
    assert adapter.row["team"] == "x" and adapter.events[0].row["lane"] == 2


def test_an_adapter_of_another_task_needs_no_events_and_no_times(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps({"events": [{"note": "x"}]}))
    adapter = read_adapter(path)
    assert (adapter.events, adapter.p0, adapter.qend) == ((), None, None)
    path.write_text(json.dumps({"events": [{"start": 0, "end": 2}] * 3}))
    assert (read_adapter(path).p0, read_adapter(path).qend) == (None, 2.0)


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ("[]", "not an object"),
        ('{"events": {}}', "events"),
        ('{"events": [1]}', "events[0]"),
        ('{"events": [{"start": 1}]}', "events[0].end"),
        ('{"events": [{"start": -1, "end": 2}]}', "events[0].start"),
        ('{"events": [{"start": NaN, "end": 2}]}', "events[0].start"),
        ('{"events": [{"start": 2, "end": 2}]}', "events[0]"),
        ("not json", "a.json"),
    ],
)
def test_a_bad_adapter_is_refused(content: str, field: str, tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(HfdError) as caught:
        read_adapter(path)
    assert "a.json" in str(caught.value) and field in str(caught.value)


@pytest.mark.parametrize("name", ["{1}.mp4", "a}.mp4", "{x}/a.mp4"])
def test_a_path_with_a_brace_is_refused_by_its_line(
    name: str, write_manifest: WriteManifest, tmp_path: Path
) -> None:
    (tmp_path / "data/videos" / name).parent.mkdir(exist_ok=True)
    (tmp_path / "data/videos" / name).write_text("{}")
    rows = manifest_row("a"), manifest_row("b", video=f"data/videos/{name}")
    text = refusal(write_manifest(*rows), tmp_path)
    assert "manifest.jsonl:2: video: path" in text and "Rename the file" in text
