"""The authors' DuplexOmni servers and client (MuyeHuang/DuplexOmni), unchanged.

Only vLLM is not theirs (engine/vllm); Code2Wav is Hugging Face's, with random weights.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile

from hfd.duplex.units import Frame
from hfd.errors import HfdError
from hfd.models.duplexomni import prompts
from hfd.models.duplexomni.frames import S2_JPEG_QUALITY, S2_SIZE, frame_rule
from hfd.models.duplexomni.settings import Settings, StackUrls
from hfd.models.duplexomni.wire import to_slice
from hfd.models.media import jpeg
from hfd.models.registry import create_model
from hfd.models.servers import ChildServer, ServerSpec
from tests.models.duplexomni.conftest import drive, session, slice_facts, units
from tests.models.duplexomni.test_prompts import CAPTURED
from tests.peers import checkpoint

COMMIT = "4c93fd023d423cc40a332edfa8745801f8e9425f"
ENGINE = Path(__file__).parent / "engine"
SLICES = 10


@pytest.fixture(scope="module")
def serving(clone):
    assert CAPTURED["commit"] == COMMIT
    return clone("DuplexOmni", COMMIT) / "inference_framework" / "realtime_serving"


@pytest.fixture(scope="module")
def simulator(serving):
    """The authors' client as a module."""
    spec = importlib.util.spec_from_file_location("simulator", serving / "simulate_video_v8.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def weights(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weights") / "tiny"
    checkpoint.make(folder)
    return folder


@pytest.fixture
def stack(serving, weights, tmp_path, monkeypatch):
    """Settings with which our runner starts the authors' servers; options are the engine's."""
    monkeypatch.chdir(tmp_path)
    environment = {
        "PYTHONPATH": str(ENGINE),
        "VLLM_ROOT": str(ENGINE),
        "CUDA_VISIBLE_DEVICES": "0,1",
        "TALKER_DEVICE": "cpu",
        "OMP_NUM_THREADS": "1",
        "ENGINE_SCRIPT": str(tmp_path / "engine.json"),
        "ENGINE_LOG": str(tmp_path / "prompts.jsonl"),
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    def make(*, clock="virtual", settings=None, **engine):
        (tmp_path / "engine.json").write_text(
            json.dumps({"replies": CAPTURED["replies"], **engine})
        )
        launch = {
            "server_root": str(serving),
            "python": sys.executable,
            "thinker_weights": str(weights),
            "talker_weights": str(weights),
            "thinker_tp": 1,
            "talker_tp": 1,
            "gpu_memory_gib": 141,
            "max_model_len": 32386,
            "ready_timeout_s": 300,
        }
        return {"stack": launch, "clock": clock, **(settings or {})}

    return make


def prompts_of(tmp_path):
    """What the engine was given, slice by slice, without the warm-up turn."""
    lines = [json.loads(line) for line in (tmp_path / "prompts.jsonl").read_text().splitlines()]
    return lines[1:]


def hashes(engine):
    return [hashlib.sha256(line["prompt"].encode()).hexdigest() for line in engine]


def test_every_slice_of_a_file_is_spoken_and_the_prompts_are_the_captured_ones(
    stack, compiled, tmp_path
):
    run = session(stack(empty=[3, 7]), compiled("peers.mp4", 24), tmp_path / "out")
    facts = slice_facts(run.trace)
    expected = {3: "empty", 7: "empty"}
    assert [f["status"] for f in facts] == [expected.get(i, "spoken") for i in range(SLICES)]
    assert all(f["talker"].get("layer0_steps") == 6 for f in facts if f["status"] == "spoken")
    assert [f["reply"] for f in facts] == CAPTURED["replies"]
    wav, rate = soundfile.read(run.out / "assistant_audio.wav", dtype="int16")
    assert rate == 24000 and len(wav) >= SLICES * 11520
    assert all(f["talker_sha256"] for f in facts if f["status"] == "spoken")
    engine = prompts_of(tmp_path)
    assert [line["index"] for line in engine] == list(range(SLICES))
    assert hashes(engine) == CAPTURED["sha256"]
    assert all(line["audio"] == [7680, 16000] for line in engine)


def test_the_authors_client_gives_the_engine_the_same_prompts_and_the_same_frames(
    serving, stack, compiled, tmp_path
):
    """Their simulator and orchestrator, then our runner, over the same file and servers."""
    video = compiled("both.mp4", 24)
    settings = stack()
    model = create_model("duplexomni", settings)
    orchestrator = None
    try:
        model.load()
        thinker, talker = model._stack.thinker.port, model._stack.talker.port
        orchestrator = _orchestrator(serving, thinker, talker)
        client = [sys.executable, str(Path(__file__).with_name("run_simulator.py"))]
        client += [serving / "simulate_video_v8.py", f"http://127.0.0.1:{orchestrator.port}"]
        client += [settings["stack"]["thinker_weights"], video, tmp_path / "theirs.wav"]
        subprocess.run([str(part) for part in client], check=True, timeout=600)
    finally:
        if orchestrator is not None:
            orchestrator.stop()
        model.unload()
    theirs = prompts_of(tmp_path)
    assert hashes(theirs) == CAPTURED["sha256"]
    (tmp_path / "prompts.jsonl").unlink()
    session(settings, video, tmp_path / "out")
    ours = prompts_of(tmp_path)
    assert [line["prompt"] for line in ours] == [line["prompt"] for line in theirs]
    assert ours[0]["sampling"] == theirs[0]["sampling"]
    assert [line["sizes"] for line in ours] == [line["sizes"] for line in theirs]
    assert [line["images"][0] for line in ours] == [line["images"][0] for line in theirs]
    assert all(line["audio"] == [11520, 24000] for line in theirs)
    mixed, _ = soundfile.read(tmp_path / "theirs.wav", dtype="int16")
    assert len(mixed) == SLICES * 11520, "their own slices are 480 ms long too"


def _orchestrator(serving, thinker, talker):
    environment = {
        "ORCH_HOST": "127.0.0.1",
        "ORCH_PORT": "{port}",
        "THINKER_INTERNAL_URL": f"http://127.0.0.1:{thinker}/internal/chat_turn",
        "TALKER_INTERNAL_URL_BASE": f"http://127.0.0.1:{talker}/internal/talker/turn",
        "TALKER_DELETE_URL_BASE": f"http://127.0.0.1:{talker}/v1/talker/session",
    }
    spec = ServerSpec(
        "orchestrator",
        [sys.executable, str(serving / "serving_core" / "server_orchestrator.py")],
        "http://127.0.0.1:{port}/health",
        env=environment,
    )
    server = ChildServer(spec)
    server.launch()
    server.wait_ready()
    return server


def test_prompts_are_those_of_the_authors_client(simulator, serving):
    assert prompts.S2_SYSTEM_PROMPT == simulator.S2_SYSTEM_PROMPT
    source = (serving / "simulate_video_v8.py").read_text()
    assert repr(prompts.S1_SYSTEM_PROMPT)[1:-1] in source
    assert prompts.S2_AFTER_FRAMES in source


def test_a_slices_sound_is_placed_as_the_authors_client_does(simulator):
    for seed in range(5):
        pcm = np.random.default_rng(seed).integers(-32768, 32768, 10965).astype(np.int16)
        theirs = np.frombuffer(simulator.stretch_pcm_to_chunk(pcm.tobytes()), np.int16)
        assert np.array_equal(to_slice(pcm), theirs)


@pytest.mark.parametrize("size", [(1280, 720), (640, 480), (720, 1280), (320, 240), (854, 364)])
def test_frames_are_the_authors_bytes(simulator, size):
    width, height = size
    noise = np.random.default_rng(1).integers(0, 255, (height // 8 + 1, width // 8 + 1, 3))
    large = np.kron(noise, np.ones((8, 8, 1)))[:height, :width].astype(np.uint8)
    picture = av.VideoFrame.from_ndarray(np.ascontiguousarray(large), format="rgb24")
    picture = picture.reformat(format="yuv420p")
    rule = frame_rule(Settings(StackUrls("", "")))
    assert jpeg(Frame(0, picture), rule.jpeg_quality, rule.size) == simulator._resize_frame(
        picture.to_image(), 784
    )
    assert jpeg(Frame(0, picture), S2_JPEG_QUALITY, S2_SIZE) == simulator._resize_frame(
        picture.to_image(), 720, quality=95
    )


def test_a_dead_engine_behind_their_live_server_is_named_and_the_servers_are_started_again(
    stack, tmp_path
):
    model = create_model("duplexomni", stack(dead_at=4))
    try:
        model.load()
        with pytest.raises(HfdError, match=r"slice 2: the thinker answered 500.*EngineDeadError"):
            drive(model, units(4), tmp_path)
        with urllib.request.urlopen(f"http://127.0.0.1:{model._stack.thinker.port}/health") as ok:
            assert json.load(ok)["ok"], "their server still calls itself healthy"
        assert len([e for e in drive(model, units(4), tmp_path) if hasattr(e, "pcm")]) == 4
    finally:
        model.unload()


def test_a_thinker_slower_than_real_time_is_not_online(stack, tmp_path):
    model = create_model("duplexomni", stack(clock="arrival", think_s=0.8))
    try:
        model.load()
        with pytest.raises(HfdError, match=r"not_online: slice [12] left"):
            drive(model, units(12), tmp_path)
    finally:
        model.unload()


def test_nothing_of_their_servers_is_left_behind(stack, tmp_path):
    model = create_model("duplexomni", stack())
    model.load()
    model.unload()
    mine = [
        pid
        for pid in (path.name for path in Path("/proc").iterdir() if path.name.isdigit())
        if str(tmp_path / "engine.json") in _environment(pid) and int(pid) != os.getpid()
    ]
    assert not mine


def _environment(pid):
    try:
        return Path(f"/proc/{pid}/environ").read_text(errors="replace")
    except OSError:
        return ""
