"""Aero's two sockets under attack, each while the other server is honest."""

from __future__ import annotations

import functools
import json
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from hfd.models.servers import ChildServer, ServerSpec
from tests.contract.hostile import SOCKET_ATTACKS, Target
from tests.fakes.hostile import hostile_socket
from tests.models.aero.conftest import server_settings

LIMITS = {"connect_s": 5, "final_event_s": 1.0, "speech_idle_s": 1.0, "drain_max_s": 2.0}


_running: list[ChildServer] = []


def aero_message(value):
    return {"type": "response.text.delta", "delta": value}


def tts_message(value):
    return {"type": "audio.start", "utterance": value}


async def greet_aero(link):
    """The session is open and the first unit has come."""
    while json.loads(await link.recv())["type"] != "input.audio.append":
        pass


async def greet_tts(link):
    """The session is agreed on and the first text has come."""
    await link.recv()
    ready = {"type": "session.ready", "sample_rate": 24000, "frame_samples": 1920}
    await link.send(json.dumps(ready))
    await link.recv()


@functools.cache
def honest(script):
    """The other server, once for all attacks; its guardian ends it with the test run."""
    spec = ServerSpec.from_settings(script, server_settings(f"{script}_server.py"))
    server = ChildServer(spec, Path(tempfile.mkdtemp()))
    server.launch()
    server.wait_ready()
    _running.append(server)
    return f"ws://127.0.0.1:{server.port}"


@contextmanager
def aero(attack, folder):
    with hostile_socket(greet_aero, attack, aero_message) as port:
        yield {
            "url": f"ws://127.0.0.1:{port}/v1/aero/realtime",
            "tts_url": f"{honest('tone')}/v1/tts/stream",
            **LIMITS,
        }


@contextmanager
def tts(attack, folder):
    with hostile_socket(greet_tts, attack, tts_message) as port:
        yield {
            "url": f"{honest('aero')}/v1/aero/realtime?slots=1-4",
            "tts_url": f"ws://127.0.0.1:{port}/v1/tts/stream",
            **LIMITS,
        }


TARGETS = [
    Target("aero", "aero", aero, SOCKET_ATTACKS, marks=(pytest.mark.realtime,)),
    Target("aero-tts", "aero", tts, SOCKET_ATTACKS, marks=(pytest.mark.realtime,)),
]
