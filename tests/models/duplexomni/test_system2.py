"""The second system: off by default; asked in the background; its commands reach the thinker."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise

import pytest

from hfd.errors import HfdError
from hfd.models.registry import create_model
from tests.fakes.duplexomni import Talker, Thinker, dict_text

PICTURES = 29
"""5.8 s: 13 slices."""


class Endpoint:
    """An OpenAI-compatible chat endpoint that streams `pieces`, one every `pace_s`."""

    def __init__(self, pieces, pace_s=0.0, status=200):
        self.pieces, self.pace_s, self.status = pieces, pace_s, status
        self.requests, self.keys, self.broken = [], [], 0
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                owner.requests.append(json.loads(body))
                owner.keys.append(self.headers.get("Authorization"))
                self.send_response(owner.status)
                self.end_headers()
                try:
                    for piece in owner.pieces:
                        delta = {"choices": [{"delta": {"content": piece}}]}
                        self.wfile.write(f"data: {json.dumps(delta)}\n\n".encode())
                        time.sleep(owner.pace_s)
                    self.wfile.write(b"data: [DONE]\n\n")
                except OSError:
                    owner.broken += 1

            def log_message(self, *_):
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}/v1"
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()

    def die(self):
        self._http.shutdown()
        self._http.server_close()


def thinks_at(first, *, waits_at=None):
    """Asks for S2 in one slice, stops it in another, and repeats what it heard of the user."""

    def answer(index, messages):
        control = {first: "[THINK]", waits_at: "[WAIT]"}.get(index, "")
        return dict_text(asr=f"问{index}" if index <= first else "", system2_control=control)

    return answer


def commands_of(thinker):
    return [(index, r.command) for index, r in enumerate(thinker.requests) if r.command]


@pytest.fixture
def with_s2(servers, converse):
    """Run 13 slices with S2 on an endpoint."""

    def run(thinker, endpoint, **s2):
        talker = servers(Talker)
        s2 = {"url": endpoint.url, "model": "vision-1", **s2}
        return converse(thinker, talker, clock="arrival", pictures=PICTURES, s2=s2)

    return run


def test_s2_is_off_by_default_and_recorded_as_off(servers, converse):
    thinker = servers(Thinker, thinks_at(1))
    run = converse(thinker)
    assert run.provenance["model"]["detail"]["s2"] == "off"
    assert not commands_of(thinker)
    assert [c["control"] for c in run.result["controls"]] == ["think"]


@pytest.mark.realtime
def test_commands_reach_the_thinker_one_per_slice_with_a_gap(servers, with_s2, monkeypatch):
    monkeypatch.setenv("S2_TEST_KEY", "sk-very-secret")
    endpoint = servers(Endpoint, ["好【先", "说一】【再说", "二】完", "【最后】"])
    thinker = servers(Thinker, thinks_at(1))
    run = with_s2(thinker, endpoint, api_key_env="S2_TEST_KEY")
    commands = commands_of(thinker)
    assert [command for _, command in commands] == ["【先说一】", "【再说二】", "【最后】"]
    slices = [index for index, _ in commands]
    assert slices[0] >= 2
    gaps = [later - earlier for earlier, later in pairwise(slices)]
    assert all(2 <= gap <= 3 for gap in gaps), "0.5-1.0 s are 1.04-2.08 slices"
    told = endpoint.requests[0]
    assert told["messages"][1] == {"role": "user", "content": "[User]: 问0问1"}
    pictures = [part for part in told["messages"][2]["content"] if part["type"] == "image_url"]
    assert len(pictures) == 1, "the picture of slice 0"
    assert told["stream"] is True and told["model"] == "vision-1"
    assert endpoint.keys == ["Bearer sk-very-secret"]
    everything = "".join(path.read_text("utf-8", "ignore") for path in run.out.glob("*.json"))
    assert "sk-very-secret" not in everything + json.dumps(run.trace)
    recorded = run.provenance["model"]["detail"]["s2"]
    assert recorded["model"] == "vision-1" and len(recorded["host_sha256"]) == 16


@pytest.mark.realtime
def test_wait_stops_a_thought_and_what_it_would_have_said(servers, with_s2):
    endpoint = servers(Endpoint, [f"【{n}】" for n in range(40)], pace_s=0.7)
    thinker = servers(Thinker, thinks_at(1, waits_at=3))
    with_s2(thinker, endpoint)
    given = [command for _, command in commands_of(thinker)]
    assert given and given == [f"【{n}】" for n in range(len(given))]
    assert len(given) <= 3, "0.96 s of thinking at 0.7 s a command"
    assert endpoint.broken == 1


@pytest.mark.realtime
def test_s2_that_fails_fails_the_sample_and_is_not_passed_over(servers, with_s2):
    endpoint = servers(Endpoint, ["quota exceeded"], status=429)
    with pytest.raises(HfdError, match=r"slice \d: S2 failed: 429"):
        with_s2(servers(Thinker, thinks_at(1)), endpoint)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"clock": "virtual"}, "settings.s2: S2 thinks in real time"),
        ({"s2": {"url": "https://key@host/v1", "model": "m"}}, "settings.s2.url"),
        ({"s2": {"url": "file:///x", "model": "m"}}, "settings.s2.url"),
        ({"s2": {"url": "http://h/v1"}}, "settings.s2.model: is missing"),
    ],
)
def test_wrong_s2_settings_are_refused(more, why):
    stack = {"thinker_url": "http://127.0.0.1:1", "talker_url": "http://127.0.0.1:2"}
    settings = {"stack": stack, "s2": {"url": "http://h/v1", "model": "m"}, **more}
    with pytest.raises(HfdError, match=why):
        create_model("duplexomni", settings)


def test_a_key_that_is_not_set_is_told_before_the_servers_start():
    stack = {"thinker_url": "http://127.0.0.1:1", "talker_url": "http://127.0.0.1:2"}
    s2 = {"url": "http://h/v1", "model": "m", "api_key_env": "HFD_NO_SUCH_KEY"}
    with pytest.raises(HfdError, match="HFD_NO_SUCH_KEY is not set"):
        create_model("duplexomni", {"stack": stack, "s2": s2}).load()
