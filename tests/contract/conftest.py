"""Which models take part, and the files that they are given."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import pytest
import soundfile

from hfd.models.registry import create_model
from tests.contract.case import Case

TESTS = Path(__file__).parents[1]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "case" in metafunc.fixturenames:
        cases = chosen_cases(metafunc.config)
        params = [pytest.param(case, id=case.name, marks=case.marks) for case in cases]
        metafunc.parametrize("case", params, scope="module")


def chosen_cases(config: pytest.Config) -> list[Case]:
    """The model that the command line names, or every ``contract.py`` of this repository."""
    module = config.getoption("--model")
    if module is None:
        files = sorted(TESTS.glob(f"models/{config.getoption('--case')}/contract.py"))
        names = [".".join(file.relative_to(TESTS.parent).with_suffix("").parts) for file in files]
        found = [vars(importlib.import_module(name)) for name in names]
        return [case for names in found for case in names.get("CASES") or [names["CASE"]]]
    if folder := config.getoption("--model-path"):
        sys.path.insert(0, str(Path(folder).resolve()))
    settings = json.loads(config.getoption("--model-settings"))
    return [Case(module, module, lambda _: nullcontext(settings), speaks=False)]


@pytest.fixture(scope="module")
def settings(case, tmp_path_factory):
    """The model's settings, while what it talks to is up."""
    with case.peer(tmp_path_factory.mktemp("peer")) as given:
        yield given


@pytest.fixture(scope="module")
def model(case, settings):
    """The model, loaded once for all tests of it."""
    made = create_model(case.module, settings)
    made.identity = made.load()
    yield made
    made.unload()


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    """Compiled files: `seconds` of bursts of noise (other ones for another `seed`), or silence."""
    folder = tmp_path_factory.mktemp("clips")

    def make(seconds: float, *, seed: int = 0, silent: bool = False) -> Path:
        frames = round(seconds * 5)
        path = folder / f"{frames}-{seed}-{silent}.mp4"
        if path.exists():
            return path
        random = np.random.default_rng(seed)
        loud = np.repeat(random.integers(0, 2, frames * 2) * (not silent), 1600)
        wav, raw = path.with_suffix(".wav"), path.with_suffix(".rgb")
        pcm = 0.2 * loud * random.standard_normal(len(loud))
        soundfile.write(wav, pcm.astype(np.float32), 16000, subtype="PCM_16")
        grey = random.integers(0, 256, (frames, 1, 1, 1), dtype=np.uint8)
        raw.write_bytes(np.broadcast_to(grey, (frames, 96, 128, 3)).tobytes())
        command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-nostdin", "-y"]
        command += ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "128x96", "-r", "5", "-i", raw]
        command += ["-i", wav, "-c:v", "libx264", "-pix_fmt", "yuv420p"]
        command += ["-c:a", "flac", "-strict", "-2", path]
        subprocess.run(command, check=True)
        return path

    return make
