"""Replacing the hesitation samples: only they change, all at once, or nothing does."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hfd.data.compile import compile_sample
from hfd.data.manifest import read_manifest
from hfd.data.regenerate import (
    Report,
    compiled_folder,
    load_compiled,
    regenerate,
    remove_stale,
)
from hfd.errors import HfdError
from hfd.files import sha256_file

from .conftest import Raw, manifest_row

Regenerate = Callable[..., Report]


@pytest.fixture
def renew(raw: Raw) -> Regenerate:
    """Compile the given raw rows as far as needed and put them into data/."""

    def run(*rows: dict[str, Any]) -> Report:
        samples = raw.read(*rows)
        for sample in samples:
            folder = compiled_folder(raw.root / "work", sample)
            if not folder.exists():
                compile_sample(sample, folder / "video.mp4", folder / "adapter.json")
        compiled = load_compiled(raw.root / "work", samples)
        return regenerate(raw.root / "data/manifest.jsonl", raw.root, compiled)

    return run


OLD = json.dumps(manifest_row("h", video="data/videos/old h.mp4", adapter=None, note="kept"))
OTHERS = [
    b'\xef\xbb\xbf{"sample_id": "x",  "task":"other" , "video":"v/x.mp4","duration_seconds":9.0}\n',
    b"\n",
    OLD.encode() + b"\r\n",
    '{"id": "猫", "task": "other", "video": "v/猫.mp4", "duration_seconds": 1e1}'.encode(),
]


def manifest_of(raw: Raw) -> Path:
    return raw.root / "data/manifest.jsonl"


def state(raw: Raw) -> dict[str, tuple[str, int]]:
    """Hash and time of every file of the data set, hidden ones too."""
    files = [path for path in (raw.root / "data").rglob("*") if path.is_file()]
    return {str(path): (sha256_file(path), path.stat().st_mtime_ns) for path in files}


def test_other_rows_keep_every_byte_and_their_order(raw: Raw, renew: Regenerate) -> None:
    manifest_of(raw).write_bytes(b"".join(OTHERS))
    report = renew(raw.row("h"), raw.row("new"))
    lines = manifest_of(raw).read_bytes().split(b"\n")
    assert [line + b"\n" for line in lines[:2]] == OTHERS[:2]
    assert lines[3] == OTHERS[3]
    assert lines[2].endswith(b"\r")
    assert (report.kept, report.replaced, report.added) == (2, ("h",), ("new",))
    samples = read_manifest(manifest_of(raw), raw.root, check_files=False)
    assert [sample.sample_id for sample in samples] == ["x", "h", "猫", "new"]


def test_a_replaced_row_keeps_its_place_keys_and_paths(raw: Raw, renew: Regenerate) -> None:
    manifest_of(raw).write_text(OLD + "\n")
    renew(raw.row("h"))
    (sample,) = read_manifest(manifest_of(raw), raw.root)
    assert sample.row["note"] == "kept"
    assert sample.video == raw.root / "data/videos/old h.mp4"
    assert sample.adapter == raw.root / "data/adapters/h.json"
    assert sample.duration_seconds == 5.0
    assert [sample.row[key] for key in ("p0", "p1", "q0", "q1")] == [0.2, 0.6, 1.0, 1.5]


def test_a_manifest_is_begun_where_there_is_none(raw: Raw, renew: Regenerate) -> None:
    renew(raw.row("猫 it's"))
    (sample,) = read_manifest(manifest_of(raw), raw.root)
    assert sample.video == raw.root / "data/videos/猫 it's.mp4"


def test_doing_it_again_touches_nothing(raw: Raw, renew: Regenerate) -> None:
    renew(raw.row("h"))
    before = state(raw)
    raw.manifest.unlink()
    report = renew(raw.row("h"))
    before.pop(str(raw.manifest)), (after := state(raw)).pop(str(raw.manifest))
    assert after == before and not report.files


def test_only_what_changed_is_replaced(raw: Raw, renew: Regenerate) -> None:
    renew(raw.row("a"), raw.row("b"))
    report = renew(raw.row("a"), raw.row("b", first={"start": 5.2, "end": 5.6}))
    assert {Path(name).stem for name in report.files} == {"b"}
    assert read_manifest(manifest_of(raw), raw.root)[1].row["p0"] == 0.1


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (manifest_row("gone"), "hesitation sample 'gone' has no raw row"),
        (manifest_row("h", task="other"), "belongs to task 'other'"),
        (manifest_row("x", task="other", video="data/videos/h.mp4"), "also the file of"),
        (manifest_row("x", task="other", adapter="data/adapters/h.json"), "also the file of"),
        ("[]", "not an object"),
    ],
)
def test_a_manifest_that_disagrees_is_refused_and_left(
    line: Any, words: str, raw: Raw, renew: Regenerate
) -> None:
    text = (line if isinstance(line, str) else json.dumps(line)) + "\n"
    manifest_of(raw).write_text(text)
    with pytest.raises(HfdError) as caught:
        renew(raw.row("h"))
    assert words in str(caught.value) and "manifest.jsonl:1" in str(caught.value)
    assert manifest_of(raw).read_text() == text
    assert not (raw.root / "data/videos").exists()


def test_an_interruption_anywhere_leaves_the_old_manifest_whole(
    raw: Raw, renew: Regenerate, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest_of(raw).write_bytes(b"".join(OTHERS))
    for name in ("shutil.copyfile", "hfd.files.os.replace", "hfd.data.regenerate.atomic_write"):
        with monkeypatch.context() as patch:
            patch.setattr(name, broken)
            with pytest.raises((KeyboardInterrupt, HfdError)):
                renew(raw.row("h"), raw.row("new"))
        assert manifest_of(raw).read_bytes() == b"".join(OTHERS)
        assert not list((raw.root / "data").rglob(".*"))
    renew(raw.row("h"), raw.row("new"))
    assert len(read_manifest(manifest_of(raw), raw.root, check_files=False)) == 4


def broken(*_: Any, **__: Any) -> None:
    raise KeyboardInterrupt


def test_a_manifest_edited_meanwhile_is_not_overwritten(
    raw: Raw, renew: Regenerate, monkeypatch: pytest.MonkeyPatch
) -> None:
    manifest_of(raw).write_text(OLD + "\n")
    edited = OLD.replace("kept", "edited") + "\n"

    def edit(*_: Any) -> dict[str, Any]:
        manifest_of(raw).write_text(edited)
        return {}

    monkeypatch.setattr("hfd.data.regenerate._replace_files", edit)
    with pytest.raises(HfdError, match="changed meanwhile"):
        renew(raw.row("h"))
    assert manifest_of(raw).read_text() == edited


def test_a_source_that_changed_without_a_newer_time_is_noticed(raw: Raw, renew: Regenerate) -> None:
    renew(raw.row("h"))
    data = bytearray(raw.path("second.wav").read_bytes())
    data[-1] ^= 1
    raw.path("second.wav").write_bytes(data)
    with pytest.raises(HfdError, match="second_question is another file"):
        renew(raw.row("h"))


def test_a_damaged_compiled_video_never_reaches_the_data_set(raw: Raw, renew: Regenerate) -> None:
    renew(raw.row("h"))
    (video,) = (raw.root / "work").rglob("video.mp4")
    video.write_bytes(video.read_bytes()[:-1])
    before = state(raw)
    with pytest.raises(HfdError, match="not what was compiled"):
        renew(raw.row("h"))
    assert state(raw).keys() == before.keys()


def test_what_old_recipes_and_killed_runs_left_is_removed(raw: Raw) -> None:
    (sample,) = raw.read(raw.row("h"))
    current = compiled_folder(raw.root / "work", sample)
    for name in ("0123456789abcdef/video.mp4", ".compile-x/track.wav", f"{current.name}/video.mp4"):
        path = current.parent / name
        path.parent.mkdir(parents=True)
        path.touch()
    remove_stale(raw.root / "work", [sample])
    assert list(current.parent.iterdir()) == [current]


def test_data_that_is_a_link_to_other_storage_keeps_the_paths_as_written(
    raw: Raw, renew: Regenerate
) -> None:
    elsewhere = raw.root / "scratch/d"
    elsewhere.parent.mkdir()
    (raw.root / "data").rename(elsewhere)
    (raw.root / "data").symlink_to(elsewhere)
    renew(raw.row("h"))
    (sample,) = read_manifest(manifest_of(raw), raw.root)
    assert sample.row["video"] == "data/videos/h.mp4"
    assert (elsewhere / "videos/h.mp4").is_file() and (raw.root / "data").is_symlink()
    assert renew(raw.row("h")).files == {}
