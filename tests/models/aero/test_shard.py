"""Servers as children of a shard's worker: killed, restarted, gone with it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hfd.data.manifest import Sample
from hfd.jobs.spec import ModelSpec
from hfd.jobs.store import Store
from hfd.jobs.worker import Shard, run_shard
from hfd.models.aero import AeroModel
from tests.models.aero.conftest import SCRIPTS, pair_settings

pytestmark = pytest.mark.realtime

SAMPLES = 50
PICTURES = 1  # 0.2 s each: three units


@pytest.fixture
def workplace(tmp_path, compiled, monkeypatch):
    """A folder to work in, with 50 samples."""
    monkeypatch.chdir(tmp_path)
    video = compiled("short.mp4", PICTURES)
    Path("videos").mkdir()
    samples = []
    for number in range(SAMPLES):
        copy = Path("videos") / f"{number}.mp4"
        shutil.copyfile(video, copy)
        samples.append(Sample(f"样本 {number}", "other", copy, None, PICTURES / 5, {}, number + 1))
    return samples


def children_of(pid: int) -> set[int]:
    """All descendants of a process."""
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        for task in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            new = {int(child) for child in task.read_text().split()} - found
            found |= new
            waiting += new
    return found


def command_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def test_fifty_samples_survive_two_deaths_of_a_server_without_orphan_or_duplicate(workplace):
    store = Store(Path(), "aero")
    spec = ModelSpec("aero", "aero", pair_settings())
    killed = []
    others = children_of(os.getpid())  # the test session's own pair

    def kill_servers() -> None:
        for finished, script in ((10, "aero_server.py"), (25, "tone_server.py")):
            while len(list((Path("work") / "aero" / "store").glob("*/result.json"))) < finished:
                time.sleep(0.05)
            mine = children_of(os.getpid()) - others
            servers = [pid for pid in mine if _is_server(pid, script)]
            for pid in servers:
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    killer = threading.Thread(target=kill_servers, daemon=True)
    killer.start()
    first = run_shard(spec, Shard("g0", workplace), store, lambda text: None)
    killer.join(1)
    assert len(killed) == 2
    failed = [name for name, how in first.ended.items() if how == "failed"]
    assert len(failed) <= 2  # the samples in flight, at most
    for name in failed:
        record = json.loads(store.error_file(name).read_text())
        assert "server_died" in record["error"] and record["lost_as"] == "service_error"
    second = run_shard(spec, Shard("g0", workplace), store, lambda text: None)
    assert first.computed + second.computed == SAMPLES
    assert set(second.ended.values()) == {"done"} and len(second.ended) == SAMPLES
    texts = {
        json.loads(path.read_text())["text"]
        for path in (Path("work") / "aero" / "store").glob("*/result.json")
    }
    assert texts == {"你好"}
    left = children_of(os.getpid()) - others
    assert not [pid for pid in left if "_server.py" in command_of(pid)]


def _is_server(pid: int, script: str) -> bool:
    return script in command_of(pid) and "guardian.py" not in command_of(pid)


def test_a_worker_killed_outright_leaves_no_server(tmp_path):
    code = (
        "import json, sys, time\n"
        "from hfd.models.aero import AeroModel\n"
        "model = AeroModel(json.loads(sys.argv[1])); model.load(); print('up', flush=True)\n"
        "time.sleep(600)\n"
    )
    worker = subprocess.Popen(
        [sys.executable, "-c", code, json.dumps(pair_settings())],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
        stdout=subprocess.PIPE,
    )
    assert worker.stdout.readline() == b"up\n"
    servers = children_of(worker.pid)
    assert len([pid for pid in servers if "_server.py" in command_of(pid)]) >= 2
    worker.kill()
    worker.wait()
    deadline = time.monotonic() + 20
    while any("_server.py" in command_of(pid) for pid in servers):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_the_identity_names_the_voice_that_really_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = AeroModel(pair_settings())
    try:
        detail = model.load().detail
    finally:
        model.unload()
    assert detail["tts"]["model"] == "tone" and detail["tts"]["acceleration"] == "plain"
    assert len(detail["wire"]["sha256"]) == 64
