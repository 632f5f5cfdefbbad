"""Run the authors' orchestrator and our runner on the same reference servers and compare.

    python -m tests.models.duplexomni.compare_orchestrator \
        --orchestrator DuplexOmni/inference_framework/realtime_serving/serving_core/server_orchestrator.py \
        --python VENV/bin/python

VENV needs torch (CPU), fastapi, uvicorn, requests and websockets; this process the packages of
requirements/dev.txt. Empty slices (204) fall at random. Prints one line per slice and a summary;
ends with 1 if the texts differ or a sound is paired wrongly by our runner.
"""  # noqa: E501

from __future__ import annotations

import argparse
import io
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
import wave
from pathlib import Path

import numpy as np
from websockets.sync.client import connect

from hfd.duplex.events import Audio, Metric
from hfd.duplex.model import SampleInfo
from hfd.errors import run_cli
from hfd.models.duplexomni.pictures import jpeg
from hfd.models.duplexomni.request import RequestBody
from hfd.models.duplexomni.settings import SYSTEM_PROMPT
from hfd.models.registry import create_model
from hfd.stream.reader import to_int16
from tests.models.duplexomni.conftest import units
from tests.models.duplexomni.reference import MODEL, Talker, Thinker, tone

SLICE_S = 0.48


def through_orchestrator(url: str, slices: list) -> tuple[list[str], list[int]]:
    """Drive the orchestrator as its own client does: socket first, then one POST per slice.

    Returns:
        The text of every slice, and the value of every sound message in order of arrival.
    """
    session = "comparison"
    body = RequestBody(
        model=MODEL,
        session_id=session,
        system_prompt=SYSTEM_PROMPT,
        temperature=0.01,
        max_tokens=999,
    )
    texts, sounds = [], []
    address = url.replace("http", "ws", 1) + f"/v1/audio/stream/{session}"
    with connect(address, max_size=None) as audio:
        listener = threading.Thread(target=_listen, args=(audio, sounds), daemon=True)
        listener.start()
        for unit in slices:
            taken = unit.index % 4 == 0
            image = jpeg(_picture_at(slices, unit), 48, 85) if taken else None
            body.add_slice(to_int16(unit.pcm).tobytes(), image, "")
            answer = json.loads(_post(f"{url}/v1/chat/completions", b"".join(body.parts)))
            texts.append(answer["choices"][0]["message"]["content"])
            body.add_reply(texts[-1])
        time.sleep(1.0)  # the talker may lag behind
    urllib.request.urlopen(urllib.request.Request(f"{url}/v1/session/{session}", method="DELETE"))
    return texts, sounds


def through_runner(thinker: Thinker, talker: Talker, slices: list) -> list[tuple[str, int, str]]:
    """Text, value of the sound and status of every slice, as our runner pairs them."""
    stack = {"thinker_url": thinker.url, "talker_url": talker.url}
    settings = {"stack": stack, "clock": "virtual", "picture_short_side": 48}
    model, events = create_model("duplexomni", settings), []
    model.load()
    with tempfile.TemporaryDirectory() as folder:
        info = SampleInfo("s", len(slices) * SLICE_S, 64, 48, 1, Path(folder))
        model.open(info, events.append)
        for unit in slices:
            model.push(unit)
        model.finish()
        model.close()
    facts = {e.input_seq: e.values for e in events if isinstance(e, Metric) and e.name == "slice"}
    sounds = {e.input_seq: int(e.pcm[0]) for e in events if isinstance(e, Audio)}
    return [(facts[i]["reply"], sounds[i], facts[i]["status"]) for i in range(len(slices))]


def _picture_at(slices: list, unit):
    frames = [frame for earlier in slices[: unit.index + 1] for frame in earlier.frames]
    return [frame for frame in frames if frame.pts_samples <= unit.start][-1]


def _listen(audio, sounds: list[int]) -> None:
    for message in audio:
        with wave.open(io.BytesIO(message)) as file:
            sounds.append(int(np.frombuffer(file.readframes(1), "<i2")[0]))


def _post(url: str, body: bytes) -> bytes:
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read()


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=2):
                return
        except OSError:
            time.sleep(0.3)
    raise SystemExit("the orchestrator does not come up")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--orchestrator", required=True, type=Path)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--slices", type=int, default=25)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--port", type=int, default=21000)
    args = parser.parse_args(argv)
    empty = set(random.Random(args.seed).sample(range(args.slices), args.slices // 5))
    thinker, talker = Thinker(), Talker(silent=empty.__contains__)
    environment = {
        **os.environ,
        "ORCH_HOST": "127.0.0.1",
        "ORCH_PORT": str(args.port),
        "THINKER_INTERNAL_URL": f"{thinker.url}/internal/chat_turn",
        "TALKER_INTERNAL_URL_BASE": f"{talker.url}/internal/talker/turn",
        "TALKER_DELETE_URL_BASE": f"{talker.url}/v1/talker/session",
    }
    slices = units(args.slices)
    server = subprocess.Popen([args.python, str(args.orchestrator)], env=environment)
    try:
        _wait_for(f"http://127.0.0.1:{args.port}")
        texts, messages = through_orchestrator(f"http://127.0.0.1:{args.port}", slices)
    finally:
        server.terminate()
        server.wait()
    ours = through_runner(thinker, talker, slices)
    slice_of = {tone(index): index for index in range(args.slices)}
    print("slice text_equal ours      orchestrator: message n holds slice; placed at -> exists at")
    for index, (text, sound, status) in enumerate(ours):
        theirs = "-"
        if index < len(messages):
            held = slice_of[messages[index]]
            theirs = f"{held:3d}   {SLICE_S * index:6.2f} -> {SLICE_S * (held + 1):6.2f} s"
        voiced = "silence" if sound == 0 else f"slice {slice_of[sound]}"
        print(f"{index:5d} {text == texts[index]!s:10} {voiced:9} {theirs}  ({status})")
    equal = [text for text, _, _ in ours] == texts
    paired = all(
        sound == (0 if index in empty else tone(index)) for index, (_, sound, _) in enumerate(ours)
    )
    same_sounds = messages == [sound for _, sound, _ in ours if sound]
    shifted = sum(slice_of[value] != n for n, value in enumerate(messages))
    summary = {
        "texts_equal": equal,
        "our_pairing_right": paired,
        "same_sounds_in_the_same_order": same_sounds,
        "orchestrator_messages": len(messages),
        "messages_whose_number_is_not_their_slice": shifted,
    }
    print(json.dumps(summary, indent=2))
    return 0 if equal and paired and same_sounds else 1


if __name__ == "__main__":
    run_cli(main)
