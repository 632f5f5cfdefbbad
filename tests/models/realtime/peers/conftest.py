"""Peers that nobody here wrote, as child processes; they need requirements/realtime_peers.txt."""

from __future__ import annotations

import importlib.util
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

from hfd.models.servers import ChildServer, ServerSpec

HERE = Path(__file__).parent


@contextmanager
def peer(name: str, command: list[str], ready: str, folder: Path):
    """Start a server; gives its port."""
    settings = {"command": command, "ready": ready, "ready_timeout_s": 120}
    server = ChildServer(ServerSpec.from_settings(name, settings), folder)
    server.launch()
    server.wait_ready()
    try:
        yield server.port
    finally:
        server.stop()


def need(package: str) -> None:
    """Skip where the package is not installed; it is not imported, for it needs stand-ins."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} needs requirements/realtime_peers.txt")


@contextmanager
def vllm_omni_server(folder: Path, answer_units: int = 5):
    """vLLM-Omni's own stack."""
    need("vllm_omni")
    command = [sys.executable, str(HERE / "vllm_omni_server.py"), "{port}", str(answer_units)]
    with peer("vllm-omni", command, "http://127.0.0.1:{port}/health", folder) as port:
        yield port


@contextmanager
def moshi_server(folder: Path):
    """Moshi's own server with tiny random weights."""
    need("moshi")
    command = [sys.executable, str(HERE / "moshi_server.py"), "{port}", str(folder / "weights")]
    with peer("moshi", command, "tcp://127.0.0.1:{port}", folder) as port:
        yield port


def vllm_omni_settings(port: int, ref_audio: Path, **more):
    model = "openbmb/MiniCPM-o-4_5"
    return {
        "dialect": "vllm_omni",
        "url": f"ws://127.0.0.1:{port}/v1/realtime?model={model}&autostart=0",
        "model": model,
        "ref_audio": str(ref_audio),
        "instructions": "You are an assistant.",
        "frame_fps": 1,
        "idle_s": 1.5,
        **more,
    }


def moshi_settings(port: int, **more):
    url = f"ws://127.0.0.1:{port}/api/chat"
    return {"dialect": "moshi", "url": url, "model": "moshi-tiny", "idle_s": 1.0, **more}


@pytest.fixture(scope="session")
def ref_audio(tmp_path_factory):
    """A second of silence as a voice to speak in."""
    import numpy as np
    import soundfile

    path = tmp_path_factory.mktemp("voice") / "voice.wav"
    soundfile.write(path, np.zeros(16_000, np.int16), 16_000)
    return path


@pytest.fixture(scope="session")
def vllm_omni(tmp_path_factory):
    with vllm_omni_server(tmp_path_factory.mktemp("vllm")) as port:
        yield port


@pytest.fixture(scope="session")
def moshi(tmp_path_factory):
    with moshi_server(tmp_path_factory.mktemp("moshi")) as port:
        yield port
