"""`snakemake check_raw`: compiling's verdict on every row, before compiling."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

import check_raw
from hfd.errors import HfdError

from .conftest import Raw
from .media import run_ffmpeg
from .test_rules import Flow


def verdicts(table: Path) -> dict[str, tuple[str, str]]:
    with table.open(encoding="utf-8-sig") as stream:
        return {
            row["name"] or row["place"]: (row["verdict"], row["says"])
            for row in csv.DictReader(stream)
        }


def everything(root: Path) -> set[Path]:
    return {path for path in root.rglob("*") if path.is_file()}


def test_each_row_gets_its_verdict_and_only_the_table_is_written(raw: Raw) -> None:
    run_ffmpeg(
        *("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=2"),
        *("-pix_fmt", "yuvj420p", "-c:v", "libx264", raw.path("full.mp4")),
    )
    late = raw.row("late", first={"start": 5.0, "end": 5.4})
    three = raw.row("three")
    three["duplex"]["inputs"].append(three["duplex"]["inputs"][0])
    raw.write(
        raw.row("good"),
        raw.row("full", video="data/raw/full.mp4"),
        late,
        three,
        raw.row("gone", video="data/raw/gone.mp4"),
        raw.row("good"),
    )
    before, table = everything(raw.root), raw.root / "table.csv"
    command = [f"--raw={raw.manifest}", f"--root={raw.root}", f"--table={table}", "--jobs=2"]
    with pytest.raises(HfdError, match="4 of 6 would be refused"):
        check_raw.main(command)
    assert everything(raw.root) - before == {table}
    found = verdicts(table)
    assert found["good"] == ("ok", "")
    assert found["full"] == ("changed", "full range (0-255) to limited range (16-235)")
    assert found["late"][0] == "refused" and "duplex.inputs[0].start" in found["late"][1]
    for line, words in ((4, "3 entries"), (5, "no file 'data/raw/gone.mp4'"), (6, "same as")):
        verdict, says = found[f"{raw.manifest}:{line}"]
        assert verdict == "refused" and words in says


def test_the_verdict_is_that_of_compiling(raw: Raw) -> None:
    raw.path("second.wav").write_bytes(b"no sound")
    with pytest.raises(HfdError) as compiled:
        raw.compile(raw.row("s"))
    table = raw.root / "table.csv"
    with pytest.raises(HfdError):
        check_raw.main([f"--raw={raw.manifest}", f"--root={raw.root}", f"--table={table}"])
    assert verdicts(table)["s"] == ("refused", str(compiled.value))


def test_a_folder_of_sources_gets_a_verdict_per_file(raw: Raw) -> None:
    (raw.root / "data/raw/notes.txt").write_text("neither")
    table = raw.root / "table.csv"
    with pytest.raises(HfdError, match="1 of 4 would be refused"):
        check_raw.main([f"--folder={raw.root}/data/raw", f"--table={table}"])
    found = verdicts(table)
    assert {name: verdict for name, (verdict, _) in found.items()} == {
        "first.wav": "ok",
        "notes.txt": "refused",
        "second.wav": "ok",
        "source.mp4": "ok",
    }


def test_the_target_says_it_and_compiles_nothing(raw: Raw) -> None:
    flow = Flow(raw)
    code, text, _ = flow.run("check_raw")
    assert code == 0 and "3 checked: 3 ok, 0 changed, 0 refused" in text, text
    assert set(verdicts(raw.root / "results/check_raw.csv")) == set(flow.rows)
    assert not (raw.root / "work/compiled").exists()
    flow.rows["plain"]["timing"]["video_offset"] = 9
    code, text, _ = flow.run("check_raw")
    assert code != 0 and "refused plain: data/raw/manifest.jsonl:3: " in text, text


def test_a_missing_raw_manifest_is_one_line(tmp_path: Path) -> None:
    script = Path(check_raw.__file__)
    command = [sys.executable, script, f"--raw={tmp_path}/no.jsonl", f"--table={tmp_path}/t.csv"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert "no.jsonl: file is missing" in done.stderr
    assert list(tmp_path.iterdir()) == []
