"""OpenAI Live as aimock replays it: every byte of the file must reach it, and not one more.

Needs HFD_PEERS, a folder in which ``npm install @copilotkit/aimock@1.43.0`` was run.
"""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import numpy as np
import pytest

from hfd.models.sockets.failures import SampleFailure
from hfd.stream.reader import probe, read_units
from tests.models.realtime.conftest import run_model
from tests.models.realtime.peers.conftest import peer
from tests.models.realtime.service import b64, tone
from tests.stream.conftest import compiled  # noqa: F401  a fixture

AIMOCK = Path(os.environ.get("HFD_PEERS", "/none")) / "node_modules/@copilotkit/aimock/dist/cli.js"
pytestmark = [
    pytest.mark.peers,
    pytest.mark.realtime,
    pytest.mark.skipif(not AIMOCK.exists(), reason="no aimock under HFD_PEERS"),
]
PICTURES, ANSWERS_AT_S = 8, 0.8
SESSION = {
    "model": "gpt-live-1",
    "audio": {"format": {"type": "audio/pcm", "rate": 24_000}},
    "delegation": {"type": "client"},
}


def as_it_must_arrive(video):
    """The file's sound at 24 kHz, resampled whole by another way than the client's."""
    soxr = pytest.importorskip("soxr")
    pcm = np.concatenate([unit.pcm for unit in read_units(video, 1600, probe(video))])
    whole = soxr.resample(pcm, 16_000, 24_000, "HQ")
    return np.clip(np.rint(whole * 32768), -32768, 32767).astype("<i2").tobytes()


def transcript(sound):
    """A session: the file's sound in, a second of tone out once 0.8 s were heard, closed."""
    entries = []

    def client(**event):
        entries.append({"direction": "client", "atMs": 0, "event": event})

    def server(command, audio, **event):
        barrier = {"command": command, "audioBytes": audio}
        entry = {"direction": "server", "atMs": 0, "event": event, "barrier": barrier}
        entries.append(entry)

    resource = {**SESSION, "id": "s1", "expires_at": 2_000_000_000, "status": "active", "input": []}
    client(type="session.start", session=SESSION)
    server(1, 0, type="session.started", event_id="e1", session=resource)
    client(type="session.input_audio.append", audio=b64(sound))
    heard = int(ANSWERS_AT_S * 24_000) * 2
    words = {"event_id": "e2", "delta": "Hello", "start_ms": 800, "end_ms": 900}
    server(1, heard, type="session.output_transcript.delta", **words)
    for n in range(10):
        piece = tone(1.0)[n * 2400 : (n + 1) * 2400].tobytes()
        server(1, heard + n * 200, type="session.output_audio.delta", delta=b64(piece))
    client(type="session.close")
    usage = {"seconds": 1.6}
    server(
        2, 0, type="session.closed", event_id="e3", reason="close_requested", session=resource,
        usage=usage,
    )  # fmt: skip
    bindings = [
        {"entry": n, "pointer": pointer, "name": name, "action": action, "owner": "server"}
        for n, pointer, name, action in (
            (1, "/event_id", "b1", "define"),
            (1, "/session/id", "b2", "define"),
            (3, "/event_id", "b3", "define"),
            (len(entries) - 1, "/event_id", "b4", "define"),
            (len(entries) - 1, "/session/id", "b2", "reference"),
        )
    ]
    return {
        "version": 1,
        "model": "gpt-live-1",
        "mode": "client",
        "audio": {"encoding": "pcm16le", "sampleRateHz": 24_000, "channels": 1},
        "configuration": SESSION,
        "entries": entries,
        "bindings": bindings,
        "capture": {"source": "authored", "complete": True, "terminalEntry": len(entries) - 1},
    }


@pytest.fixture
def replay(compiled, tmp_path, monkeypatch):  # noqa: F811
    """One sample against aimock, which expects `sound`."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-none")
    monkeypatch.chdir(tmp_path)
    video = compiled(f"{PICTURES}.mp4", PICTURES)

    def run(change=lambda sound: sound):
        match = {"endpoint": "openai-live", "model": "gpt-live-1"}
        response = {"live": transcript(change(as_it_must_arrive(video))), "liveTiming": "immediate"}
        fixture = tmp_path / "fixture.json"
        fixture.write_text(json.dumps({"fixtures": [{"match": match, "response": response}]}))
        out = tmp_path / "out"
        out.mkdir()
        command = ["node", str(AIMOCK), "--port", "{port}", "--fixtures", str(fixture)]
        with peer("aimock", command, "tcp://127.0.0.1:{port}", tmp_path) as port:
            settings = {
                "dialect": "openai_live",
                "url": f"ws://127.0.0.1:{port}/v1/live/sessions",
                "model": "gpt-live-1",
                "extra_session": {"delegation": {"type": "client"}},
                "idle_s": 0.5,
                "record": True,
            }
            return run_model(settings, video, out, PICTURES / 5)

    return run


def test_every_sample_of_the_file_goes_out_unaltered_and_nothing_is_added(replay):
    run = replay()
    assert run.result["text"] == "Hello" and run.result["first_audio_s"] > ANSWERS_AT_S
    assert sum(a["samples"] for a in run.result["audio_arrivals"]) == 24_000
    assert run.end["usage"]["session"]["seconds"] == 1.6
    lines = (run.out / "side" / "raw_frames.jsonl").read_text().splitlines()
    sent = [json.loads(line)["text"] for line in lines if '"dir": "out"' in line]
    pieces = [json.loads(text).get("audio", "") for text in sent]
    assert sum(len(base64.b64decode(piece)) for piece in pieces) == int(1.6 * 24_000) * 2


def one_byte(sound):
    return sound[:50_000] + bytes([sound[50_000] ^ 2]) + sound[50_001:]


@pytest.mark.parametrize("change", [one_byte, lambda s: s[:-2], lambda s: s + bytes(2)])
def test_one_altered_byte_or_one_sample_more_or_less_fails(replay, change):
    with pytest.raises(SampleFailure):
        replay(change)
