"""Aero's client and its wire file against a server that nobody here wrote: vLLM-Omni's own.

Its handler, session manager and runner come from the wheel (tests/models/realtime/peers says what
stands in for vLLM). It speaks another dialect than Aero's is thought to: as it is, it must not
become silence; with a mended wire file and no code, the client talks with it.
"""

from __future__ import annotations

import base64
import io

import numpy as np
import pytest
import soundfile
import yaml

from hfd.errors import HfdError
from tests.models.aero.test_conversation import ROOT
from tests.models.realtime.peers.conftest import vllm_omni_server

pytestmark = [pytest.mark.heavy]
SHIPPED = ROOT / "config" / "wires" / "aero.yaml"


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    with vllm_omni_server(tmp_path_factory.mktemp("vllm")) as port:
        yield f"ws://127.0.0.1:{port}/v1/realtime?model=openbmb/MiniCPM-o-4_5&autostart=0"


def test_a_server_of_another_dialect_fails_by_name_and_is_no_silence(talk, url):
    with pytest.raises(HfdError, match=r"^aero_(error|unknown_events|refused|socket_lost): "):
        talk(url=url, pictures=10)


def test_a_mended_wire_file_is_all_it_takes_to_talk_with_it(talk, url, tmp_path):
    (tmp_path / "vllm_omni.yaml").write_text(yaml.safe_dump(mended()), "utf-8")
    run = talk(url=url, pictures=40, wire=str(tmp_path / "vllm_omni.yaml"))
    assert run.result["status"] == "ok" and run.result["text"]
    assert run.end["silence_events"] >= 2 and run.end["deltas"] >= 2
    assert run.result["end_reason"] in ("server_done", "server_closed")
    assert run.end["tts"]["frames"] > 0
    # What it issued when the session was opened went back with every unit, and it took them.
    sent = [line for line in run.trace if line["kind"] == "input"]
    assert len(sent) == 100


def mended():
    content = yaml.safe_load(SHIPPED.read_text("utf-8"))
    voice = io.BytesIO()
    soundfile.write(voice, np.zeros(16_000, np.int16), 16_000, format="WAV")
    ref_audio = "data:audio/wav;base64," + base64.b64encode(voice.getvalue()).decode()
    sound = {"type": "audio/pcm", "rate": 16_000}
    content["send"] = {
        "open": [
            {
                "type": "session.update",
                "session": {
                    "type": "realtime",
                    "output_modalities": ["audio"],
                    "audio": {
                        "input": {"format": sound, "turn_detection": None},
                        "output": {"format": {"type": "audio/pcm", "rate": 24_000}},
                    },
                    "instructions": "You are an assistant.",
                    "extra_body": {"auto_response": True, "ref_audio": ref_audio},
                },
            }
        ],
        "unit": [
            {
                "type": "input_audio_buffer.append",
                "audio": "{pcm16_base64}",
                "event_id": "{session}",
            }
        ],
        "done": [{"type": "session.close"}],
    }
    receive = content["receive"]
    receive["values"] = {"session": ["session.id"]}
    receive["silence"] = ["response.listen"]
    receive["final"] = ["session.closed"]
    receive["ignored"] += ["response.speak", "response.done", "rate_limits.updated"]
    return content
