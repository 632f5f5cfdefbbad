"""DuplexOmni's thinker, talker and S2 endpoint under attack: every turn but the warm-up's."""

from __future__ import annotations

from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from tests.contract.hostile import HTTP_ATTACKS, Target
from tests.fakes.duplexomni import WARM_UP, Talker, Thinker, dict_text
from tests.fakes.hostile import HostileHttp
from tests.models.duplexomni.conftest import settings_for

LIMITS = {"request_timeout_s": 0.4}
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def spared(request: bytes) -> bool:
    """All but the turns of a sample."""
    return not request.startswith(b"POST") or WARM_UP.encode() in request


@contextmanager
def thinker(attack, folder):
    honest, talker = Thinker(), Talker()
    hostile = HostileHttp(attack, urlsplit(honest.url).port, spared)
    try:
        yield settings_for(hostile, talker, **LIMITS)
    finally:
        for server in (hostile, honest, talker):
            server.die()


@contextmanager
def talker(attack, folder):
    thinker, honest = Thinker(), Talker()
    hostile = HostileHttp(attack, urlsplit(honest.url).port, spared)
    try:
        yield settings_for(thinker, hostile, **LIMITS)
    finally:
        for server in (hostile, honest, thinker):
            server.die()


@contextmanager
def s2(attack, folder):
    control = {0: "[THINK]"}
    thinker = Thinker(lambda i, _: dict_text(asr="?", system2_control=control.get(i, "")))
    talker = Talker()
    hostile = HostileHttp(attack, 1, lambda request: False)
    endpoint = {"url": f"{hostile.url}/v1", "model": "m", "timeout_s": 0.5}
    try:
        yield settings_for(thinker, talker, clock="arrival", s2=endpoint)
    finally:
        for server in (hostile, thinker, talker):
            server.die()


def _event(data: str):
    return lambda client: client.sendall(EVENTS + f"data: {data}\n\n".encode())


def _one_line_for_ever(client):
    client.sendall(EVENTS)
    while True:
        client.sendall(b"x" * 2**16)


S2_ATTACKS = {
    "deep_event": _event('{"choices":' * 50_000),
    "surrogate_event": _event('{"choices": [{"delta": {"content": "\\ud800"}}]}'),
    "list_event": _event("[1]"),
    "one_line_for_ever": _one_line_for_ever,
    **{name: HTTP_ATTACKS[name] for name in ("dripping_body", "no_http", "redirect", "reset")},
}
SILENT_TURN = ("early_hints_for_ever",)

TARGETS = [
    Target("duplexomni-thinker", "duplexomni", thinker, HTTP_ATTACKS, media_s=1.0),
    Target("duplexomni-talker", "duplexomni", talker, HTTP_ATTACKS, media_s=1.0),
    Target(
        "duplexomni-s2", "duplexomni", s2, S2_ATTACKS, media_s=2.4, marks=(pytest.mark.realtime,)
    ),
]
