"""envs/*.yaml and requirements/*.txt: one set of versions, and one that pip can resolve.

conda's own part (python, ffmpeg, sox) cannot be solved without a conda channel; it is kept so
small that there is nothing to solve.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ENVIRONMENTS = sorted(path.stem for path in (ROOT / "envs").glob("*.yaml"))


def pins(lines: list[str]) -> dict[str, str]:
    """Normalised names and exact versions of requirement lines."""
    found = (
        re.match(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;]+)", line.strip()) for line in lines
    )
    return {re.sub(r"[-_.]+", "-", m[1].lower()): m[2] for m in found if m}


def environment(name: str) -> tuple[list[str], list[str]]:
    """The conda and the pip lines of an environment file."""
    listed = yaml.safe_load((ROOT / "envs" / f"{name}.yaml").read_text("utf-8"))["dependencies"]
    conda = [line for line in listed if isinstance(line, str)]
    (pip,) = (line["pip"] for line in listed if isinstance(line, dict))
    return conda, pip


def lock(name: str) -> dict[str, str]:
    return pins((ROOT / "requirements" / f"{name}.txt").read_text("utf-8").splitlines())


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_only_python_ffmpeg_and_sox_come_from_conda(name):
    conda, _ = environment(name)
    assert {re.split("[=<>]", line)[0] for line in conda} <= {"python", "pip", "ffmpeg", "sox"}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_pip_line_is_an_exact_pin_of_the_lock(name):
    _, lines = environment(name)
    found = pins(lines)
    assert len(found) == len(lines), "a line that is no exact pin (a relative -r breaks in conda)"
    assert found.items() <= lock(name).items()


@pytest.mark.system  # it asks the package index
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_pip_resolves_the_lock(name):
    # The TTS server's lock leaves out what only its package's demo needs (docs/aero.md).
    extra = ["--no-deps"] if name == "tts" else []
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
        + [*extra, "-r", ROOT / "requirements" / f"{name}.txt"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
