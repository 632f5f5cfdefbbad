"""scripts/tts_server.py as a process: stock qwen-tts behind a real socket."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from websockets.sync.client import connect

from hfd.models.servers import ChildServer, ServerSpec, start_all
from hfd.models.tts.protocol import FRAME_SAMPLES

pytestmark = [pytest.mark.heavy, pytest.mark.realtime]
SERVER = Path(__file__).parents[3] / "scripts" / "tts_server.py"


@pytest.fixture(scope="module")
def port(snapshot, tmp_path_factory):
    """Port of a server with the tiny snapshot, on the CPU."""
    command = [sys.executable, str(SERVER), "--model", str(snapshot), "--device", "cpu"]
    command += ["--port", "{port}", "--threads", "1", "--max-frames", "128"]
    spec = ServerSpec("tts", tuple(command), "http://127.0.0.1:{port}/health", ready_timeout_s=120)
    server = ChildServer(spec, tmp_path_factory.mktemp("logs"))
    start_all([server])
    yield server.port
    assert "plain path on cpu" in server.log.read_text()
    server.stop()


def spoken(port, emit, seed=3):
    """Speak four tokens; returns the ready message, headers, sound and the end's message."""
    with connect(f"ws://127.0.0.1:{port}/v1/tts/stream", proxy=None) as socket:
        config = {"type": "session.config", "emit_every_frames": emit, "seed": seed}
        socket.send(json.dumps(config))
        ready = json.loads(socket.recv(60))
        sent = time.monotonic()
        for seq, text in enumerate(["Hi", " 你"]):
            socket.send(json.dumps({"type": "input.text", "seq": seq, "text": text}))
        socket.send(json.dumps({"type": "input.done"}))
        headers, sound, first = [], [], None
        while True:
            message = json.loads(socket.recv(60))
            if message["type"] == "audio.chunk":
                first = first or time.monotonic() - sent
                headers.append(message)
                sound.append(np.frombuffer(socket.recv(60), "<i2"))
            if message["type"] == "audio.done":
                done = message
            if message["type"] == "session.done":
                return ready, headers, np.concatenate(sound), done, first


def test_the_server_says_what_it_runs_and_speaks_every_sample(port):
    ready, headers, sound, done, _ = spoken(port, 1)
    assert ready["acceleration"] == "plain" and ready["versions"]["qwen-tts"] == "0.1.1"
    assert len(ready["weights_id"]) == 64 and ready["speaker"] == "eric"
    assert len(sound) == done["frames"] * FRAME_SAMPLES == done["samples"]
    assert [h["frame_index"] for h in headers] == list(range(done["frames"]))
    assert done["tokens"] == 6  # two bytes, then a space and three


def test_the_first_sound_comes_one_frame_after_the_first_text(port):
    excess = []
    for _ in range(4):
        _, headers, _, _, first = spoken(port, 1)
        excess.append(first - headers[0]["compute_ms"] / 1000)
    assert min(excess) <= 0.020  # the others may have waited for the machine


def test_the_chunk_size_does_not_change_the_speech(port):
    runs = [spoken(port, emit) for emit in (1, 4, 8)]
    for _, _, sound, done, _ in runs:
        assert len(sound) == done["samples"] == runs[0][3]["samples"]
        error = sound.astype(float) - runs[0][2]
        assert np.sqrt(np.mean(error**2)) <= 5e-3 * np.sqrt(np.mean(runs[0][2].astype(float) ** 2))


def test_a_seed_gives_the_same_samples_again(port):
    assert np.array_equal(spoken(port, 1)[2], spoken(port, 1)[2])
