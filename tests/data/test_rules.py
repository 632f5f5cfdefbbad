"""The data rules through the real Snakefile: exactly what changed is done again."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from hfd.data.manifest import read_manifest
from tests.workflow.desk import HANGS_S

from .conftest import Raw

REPO = Path(__file__).parents[2]
IDS = ["-dash it's", '甲 "b" 100% [x]', "plain"]


class Flow:
    """Snakemake on a folder with raw rows."""

    def __init__(self, raw: Raw) -> None:
        self.raw = raw
        self.rows = {name: raw.row(name) for name in IDS}

    def run(self, *targets: str) -> tuple[int, str, dict[str, int]]:
        """Exit code, output, and how many jobs of each rule were run."""
        if self.rows:
            self.raw.write(*self.rows.values())
        command = [sys.executable, "-m", "snakemake", "--snakefile", str(REPO / "Snakefile")]
        command += ["--directory", str(self.raw.root), "--cores", "2", "--configfile"]
        command += [str(REPO / "config/config.yaml"), str(REPO / "config/models.yaml"), "--"]
        done = subprocess.run([*command, *targets], capture_output=True, text=True, timeout=HANGS_S)
        text = done.stdout + done.stderr
        counts = {name: int(n) for name, n in re.findall(r"^(\w+) +(\d+)$", text, re.M)}
        return done.returncode, text, counts


@pytest.fixture
def flow(raw: Raw) -> Flow:
    return Flow(raw)


def test_regenerating_compiles_exactly_what_changed(flow: Flow) -> None:
    code, text, counts = flow.run("regenerate_hesitation")
    assert code == 0, text
    assert counts["compile_hesitation"] == 3
    manifest = flow.raw.root / "data/manifest.jsonl"
    assert [sample.sample_id for sample in read_manifest(manifest, flow.raw.root)] == IDS

    code, text, counts = flow.run("regenerate_hesitation")
    assert (code, counts.get("compile_hesitation")) == (0, None), text
    assert "0 files changed" in text

    flow.rows["plain"] = flow.raw.row("plain", first={"start": 5.2, "end": 5.6})
    code, text, counts = flow.run("regenerate_hesitation")
    assert (code, counts["compile_hesitation"]) == (0, 1), text
    assert "2 files changed" in text
    assert len(list((flow.raw.root / "work/compiled/plain").iterdir())) == 1

    code, text, counts = flow.run("check_data")
    assert (code, counts["check_sample"]) == (0, 3), text
    assert "3 ok, 0 suspect, 0 fail" in text


def test_delivered_data_needs_no_raw_rows_and_a_bad_sample_is_listed(flow: Flow) -> None:
    del flow.rows["plain"]
    assert flow.run("regenerate_hesitation")[0] == 0
    (flow.raw.root / "data/videos/-dash it's.mp4").write_text("no video")
    flow.raw.manifest.unlink()
    flow.rows = {}
    code, text, counts = flow.run("check_data")
    assert code != 0 and counts["check_sample"] == 2
    assert re.search(r"fail +-dash it's: readable: cannot be read as a video", text)
    with (flow.raw.root / "results/check_data.csv").open(encoding="utf-8-sig") as table:
        assert [row["status"] for row in csv.DictReader(table)] == ["fail", "ok"]


def test_a_bad_raw_row_stops_regeneration_with_its_line_and_field(flow: Flow) -> None:
    flow.rows["plain"]["duplex"]["inputs"].pop()
    code, text, _ = flow.run("regenerate_hesitation")
    assert code != 0
    assert "data/raw/manifest.jsonl:3: duplex.inputs: has 1 entries, not 2" in text
    assert not (flow.raw.root / "data/manifest.jsonl").exists()


def test_one_row_that_cannot_be_compiled_leaves_the_manifest_as_it_was(flow: Flow) -> None:
    assert flow.run("regenerate_hesitation")[0] == 0
    before = (flow.raw.root / "data/manifest.jsonl").read_bytes()
    flow.rows["plain"] = flow.raw.row("plain", first={"start": 5.0, "end": 5.4})
    flow.rows["new"] = flow.raw.row("new")
    code, _, _ = flow.run("regenerate_hesitation")
    assert code != 0
    assert (flow.raw.root / "data/manifest.jsonl").read_bytes() == before
    logs = (flow.raw.root / "logs/compile_hesitation").glob("plain.*.log")
    assert any("duplex.inputs[0].start" in log.read_text() for log in logs)
    assert json.loads(before.splitlines()[0])["sample_id"] == "-dash it's"
