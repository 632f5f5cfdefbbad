"""README's tour, typed in its order by somebody new: six samples, shipped configuration."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.workflow.desk import HANGS_S, REPO, counts
from tests.workflow.repository import clone_repository

SAMPLES = 6
RAW_ROWS = 4


@pytest.fixture(scope="module")
def home(demo_folder, tmp_path_factory):
    """A fresh clone with raw rows and compiled samples of real recordings, six in all."""
    home = clone_repository(tmp_path_factory.mktemp("newcomer") / "hfd-duplex")
    shutil.copytree(demo_folder, home / "data", dirs_exist_ok=True)
    raw = home / "data" / "raw" / "manifest.jsonl"
    raw.write_text("".join(raw.read_text("utf-8").splitlines(True)[:RAW_ROWS]), "utf-8")
    return home


def _type(home: Path, command: str, ok: bool = True) -> str:
    """Run a line of the README; what it printed, without Snakemake's own account of its jobs."""
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        command, shell=True, cwd=home, env=os.environ | {"PATH": path}, text=True, timeout=HANGS_S,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert (done.returncode == 0) == ok, done.stdout
    assert "Traceback" not in done.stdout
    return done.stdout


def _tour() -> list[str]:
    """The commands of README's tour."""
    text = (REPO / "README.md").read_text("utf-8").split(". .venv/bin/activate\n")[1]
    return [line.split("#")[0].strip() for line in text.split("```")[0].splitlines()]


def test_the_tour_from_raw_rows_to_the_audit(home):
    said = {command: _type(home, command) for command in _tour()}
    rows = [json.loads(line) for line in (home / "data/manifest.jsonl").open(encoding="utf-8")]
    assert len(rows) == SAMPLES
    assert f"{SAMPLES} samples: {SAMPLES} ok" in said["snakemake check_data"]
    assert "module cascade, settings, voice streaming_tts" in said["snakemake preflight_cascade"]
    assert "FAIL" not in said["snakemake preflight_cascade"]
    assert counts(said["snakemake -n results_cascade"], "cascade") == (SAMPLES, 0, 0, SAMPLES)
    for row in rows[:2]:
        assert f"results/cascade/{row['sample_id']}\n" in said["snakemake pilot_cascade"]
    assert counts(said["snakemake results_cascade"], "cascade") == (SAMPLES, SAMPLES, 0, 0)
    assert f"cascade: {SAMPLES} expected" in said["snakemake audit_now"]
    assert "roma:" not in said["snakemake audit_now"]  # of which there is nothing to judge
    assert (home / "results/audit_now/index.html").exists()
    assert counts(_type(home, "snakemake missing"), "roma") == (SAMPLES, 0, 0, SAMPLES)
    assert "Nothing to be done" in _type(home, "snakemake results_cascade")
    assert "nothing is wrong" in _type(home, "python scripts/verify_results.py results/cascade")


def test_new_evidence_makes_the_audit_anew_and_only_that(home):
    _type(home, "snakemake audit_cascade")
    assert "Nothing to be done" in _type(home, "snakemake audit_cascade")
    _type(home, "snakemake transcripts_cascade")
    assert "audit of cascade" in _type(home, "snakemake audit_cascade")
    assert "Nothing to be done" in _type(home, "snakemake audit_cascade")
    _type(home, "snakemake audit_cascade --report report.zip")
    with zipfile.ZipFile(home / "report.zip") as report:
        assert any(name.endswith("report.html") for name in report.namelist())


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("snakemake -n results_roma", "error: config/models.yaml: "),
        ("snakemake result_cascade", "Did you mean results_cascade"),
        ("snakemake --profile slurm results_cascade", "error: --profile slurm needs"),
        (
            "snakemake -n results_cascade --config check='{deny_list: old.txt}'",
            "error: old.txt: cannot be read",
        ),
    ],
)
def test_what_cannot_run_says_so_in_one_line(home, command, said):
    output = _type(home, command, ok=False)
    (line,) = (line for line in output.splitlines() if "error:" in line)
    assert said in line


@pytest.mark.parametrize("script", ["run_streaming_pilot.py", "aero/run_aero_online_batch.py"])
def test_the_teams_own_lines_are_there(script):
    done = subprocess.run(
        [sys.executable, REPO / "code" / script, "--help"], capture_output=True, text=True
    )
    assert done.returncode == 0
    assert "--manifest" in done.stdout and "--output-root" in done.stdout


LIGHT = ("infer", "missing", "preflight", "publish", "run_aero", "run_model", "run_roma", "unlock")


@pytest.mark.parametrize("script", LIGHT)
def test_help_needs_no_package(script):
    command = [sys.executable, "-S", REPO / "scripts" / f"{script}.py", "--help"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
