"""Both servers as real processes, a short compiled file, and a run through the real session."""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hfd.data.manifest import Sample
from hfd.models.registry import create_model
from hfd.models.servers import ChildServer, ServerSpec, start_all
from hfd.stream.run import Run
from hfd.stream.session import run_sample
from tests.stream.conftest import compiled  # noqa: F401  a fixture

HERE = Path(__file__).parent
SCRIPTS = HERE.parents[2] / "scripts"


def server_settings(script: str, *more: str) -> dict:
    """How a test server is started, as config/models.yaml would say it."""
    return {
        "command": [sys.executable, str(HERE / script), "{port}", *more],
        "ready": "http://127.0.0.1:{port}/health",
        "env": {"PYTHONPATH": os.pathsep.join([str(SCRIPTS), str(HERE.parents[2])])},
        "ready_timeout_s": 60,
    }


def pair_settings(**changes) -> dict:
    """Settings under which both servers are children of the worker."""
    servers = {name: server_settings(f"{name}_server.py") for name in ("aero", "tone")}
    return {
        "url": "ws://127.0.0.1:{port}/v1/aero/realtime?slots=1-4",
        "tts_url": "ws://127.0.0.1:{port}/v1/tts/stream",
        "servers": {"aero": servers["aero"], "tts": servers["tone"]},
        "final_event_s": 1.0,
        **changes,
    }


@pytest.fixture(scope="session")
def servers(tmp_path_factory):
    """The reference Aero server and the TTS server, for the whole test session."""
    logs = tmp_path_factory.mktemp("logs")
    pair = [
        ChildServer(ServerSpec.from_settings(name, server_settings(f"{name}_server.py")), logs)
        for name in ("aero", "tone")
    ]
    start_all(pair)
    yield {server.spec.name: server for server in pair}
    for server in pair:
        server.stop()


@pytest.fixture(scope="session")
def converse(servers, compiled):  # noqa: F811
    """Run one sample against the pair; gives result, provenance, trace lines and the folder."""

    def run(out: Path, mode="honest", *, tts="", pictures=7, slots="2-13", **settings):
        path = compiled(f"{pictures}.mp4", pictures)
        sample = Sample("样 本 1", "other", path, None, pictures / 5, {}, 1)
        aero, tone = (f"ws://127.0.0.1:{servers[name].port}" for name in ("aero", "tone"))
        settings = {
            "url": f"{aero}/v1/aero/realtime?mode={mode}&slots={slots}",
            "tts_url": f"{tone}/v1/tts/stream{tts}",
            "final_event_s": 1.0,
            "speech_idle_s": 1.5,
            **settings,
        }
        model = create_model("aero", settings)
        try:
            shared = Run("aero", "aero", settings, 1, model.load())
            result = run_sample(model, shared, sample, out, fingerprint="f" * 64)
        finally:
            model.unload()
        with gzip.open(out / "trace.jsonl.gz", "rt") as lines:
            trace = [json.loads(line) for line in lines]
        provenance = json.loads((out / "provenance.json").read_text())
        return SimpleNamespace(
            result=result, provenance=provenance, trace=trace, out=out, end=trace[-1]
        )

    return run


@pytest.fixture(scope="session")
def honest(converse, tmp_path_factory):
    """One run of an honest pair, looked at from many sides."""
    return converse(tmp_path_factory.mktemp("honest"))


@pytest.fixture
def talk(converse, tmp_path):
    """`converse` into a folder of the test's own."""
    out = tmp_path / "out"
    out.mkdir()
    return lambda *args, **settings: converse(out, *args, **settings)
