"""scripts/run_aero.py by hand, with the team's option names."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from tests.models.aero.conftest import SCRIPTS


@pytest.mark.realtime
def test_the_teams_command_line_gives_the_teams_files(servers, compiled, tmp_path):
    (tmp_path / "data" / "videos").mkdir(parents=True)
    shutil.copyfile(compiled("two.mp4", 2), tmp_path / "data" / "videos" / "a.mp4")
    row = {"sample_id": "a b", "task": "other", "video": "data/videos/a.mp4"}
    row |= {"duration_seconds": 0.4}
    (tmp_path / "data" / "manifest.jsonl").write_text(json.dumps(row) + "\n")
    aero, tone = (f"ws://127.0.0.1:{servers[name].port}" for name in ("aero", "tone"))
    command = [sys.executable, str(SCRIPTS / "run_aero.py")]
    command += ["--manifest", "data/manifest.jsonl", "--output-root", "results_aero"]
    command += ["--url", f"{aero}/v1/aero/realtime?slots=1-3", "--tts-url"]
    command += [f"{tone}/v1/tts/stream", "--set", "final_event_s=1"]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
    for expected in ("ok: '你好,'", "kept"):
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=30
        )
        assert done.returncode == 0, done.stderr
        assert done.stdout == f"a b: {expected}\n"
    folder = tmp_path / "results_aero" / "a b"
    result = json.loads((folder / "result.json").read_text())
    assert {"text", "audio_arrivals", "qend"} <= set(result)
    wav = (folder / "assistant_audio.wav").read_bytes()
    assert (folder / "assistant_stream.wav").read_bytes() == wav
