"""The reference services as a process, a short compiled file, and a run through the session."""

from __future__ import annotations

import gzip
import json
import sys
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from hfd.data.manifest import Sample
from hfd.models import realtime
from hfd.models.registry import create_model
from hfd.models.servers import ChildServer, ServerSpec
from hfd.stream.run import Run
from hfd.stream.session import run_sample
from tests.stream.conftest import compiled  # noqa: F401  a fixture

HERE = Path(__file__).parent
KEY = "sk-right"
PATHS = {
    "openai": "/v1/realtime?model=gpt-test",
    "qwen": "/api-ws/v1/realtime?model=qwen-test",
    "vllm_omni": "/v1/realtime?model=m&autostart=0",
    "openai_live": "/v1/live/sessions?",
    "gemini": "/ws/google.ai.generativelanguage.v1beta.GenerativeService.BidiGenerateContent?",
}


@pytest.fixture(autouse=True)
def _keys(monkeypatch):
    for name in ("OPENAI_API_KEY", "DASHSCOPE_API_KEY", "GOOGLE_API_KEY"):
        monkeypatch.setenv(name, KEY)
    monkeypatch.setattr(realtime, "RETRY_S", (0.05,))


@contextmanager
def services(folder: Path):
    """The reference services as a process; gives their port."""
    spec = ServerSpec.from_settings(
        "services",
        {
            "command": [sys.executable, str(HERE / "service.py"), "{port}"],
            "ready": "http://127.0.0.1:{port}/health",
            "ready_timeout_s": 60,
        },
    )
    server = ChildServer(spec, folder)
    server.launch()
    server.wait_ready()
    yield server.port
    server.stop()


@pytest.fixture(scope="session")
def service(tmp_path_factory):
    """The port of the reference services."""
    with services(tmp_path_factory.mktemp("logs")) as port:
        yield port


def settings_for(dialect: str, port: int, mode: str = "honest", **more):
    return {
        "dialect": dialect,
        "url": f"ws://127.0.0.1:{port}{PATHS[dialect]}&mode={mode}",
        "model": "gpt-test",
        "idle_s": 0.4,
        "stall_s": 1.5,
        "setup_s": 5,
        "drain_max_s": 20,
        **more,
    }


def run_model(settings, video, out, media_s, name="realtime"):
    """One sample; gives result, provenance, trace lines and the folder."""
    model = create_model("realtime", settings)
    sample = Sample("样 本 1", "other", video, None, media_s, {}, 1)
    try:
        shared = Run(name, "realtime", settings, 1, model.load())
        result = run_sample(model, shared, sample, out, fingerprint="f" * 64)
    finally:
        model.unload()
    with gzip.open(out / "trace.jsonl.gz", "rt") as lines:
        trace = [json.loads(line) for line in lines]
    provenance = json.loads((out / "provenance.json").read_text())
    return SimpleNamespace(
        result=result, provenance=provenance, trace=trace, out=out, end=trace[-1]
    )


@pytest.fixture
def talk(service, compiled, tmp_path, monkeypatch):  # noqa: F811
    """Run one sample against a reference service."""
    monkeypatch.chdir(tmp_path)

    def run(dialect, mode="honest", pictures=8, **more):
        out = tmp_path / "out"
        out.mkdir(exist_ok=True)
        video = compiled(f"{pictures}.mp4", pictures)
        return run_model(settings_for(dialect, service, mode, **more), video, out, pictures / 5)

    return run
