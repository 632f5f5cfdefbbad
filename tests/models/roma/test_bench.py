"""The benchmark runs to its end on the tiny snapshot, and sees what it must see there."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.heavy
SCRIPT = Path(__file__).parents[3] / "benchmarks" / "roma_steps.py"


def test_the_benchmark_measures_both_paths_and_finds_them_equal(snapshot, tmp_path):
    out = tmp_path / "new" / "numbers.json"
    command = [sys.executable, SCRIPT, "--tiny", snapshot, "--out", out, "--without-sound"]
    subprocess.run([*command, "--contexts", "2", "--repeats", "1"], check=True, timeout=120)
    numbers = json.loads(out.read_text())
    equality = numbers["equality"]
    assert equality["pictures_equal"]
    assert equality["token_differences"] == equality["code_differences"] == []
    first, second = (numbers[f"graphs end_to_end {run}"]["sha256"] for run in (1, 2))
    assert first == second
    table = out.with_suffix(".md").read_text(encoding="utf-8")
    assert {"think unit", "code", "listening second"} <= {
        line.split(" | ")[0].strip("| ") for line in table.splitlines()
    }
