"""The realtime client under attack, in each dialect whose messages are JSON."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from functools import partial

import pytest

from hfd.models import realtime
from tests.contract.hostile import SOCKET_ATTACKS, Target
from tests.fakes.hostile import hostile_socket
from tests.models.realtime.conftest import KEY, settings_for

LIMITS = {"stall_s": 1.0, "setup_s": 3, "drain_max_s": 2.0}
MUTE = ("half_a_message_for_ever",)
"""To say nothing that is meant is a service's right."""


async def greet_openai(link):
    """The session is agreed on and the first sound has come."""
    await link.send(json.dumps({"type": "session.created", "session": {"id": "s"}}))
    session = json.loads(await link.recv())["session"]
    await link.send(json.dumps({"type": "session.updated", "session": session}))
    await link.recv()


async def greet_gemini(link):
    """As `greet_openai`."""
    await link.recv()
    await link.send(json.dumps({"setupComplete": {}}))
    await link.recv()


async def greet_live(link):
    """As `greet_openai`."""
    session = json.loads(await link.recv())["session"]
    started = {**session, "id": "l", "expires_at": 1, "status": "active"}
    await link.send(json.dumps({"type": "session.started", "session": started}))
    await link.recv()


async def greet_vllm_omni(link):
    """As `greet_openai`."""
    session = {"id": "v", "audio": json.loads(await link.recv())["session"]["audio"]}
    await link.send(json.dumps({"type": "session.created", "session": session}))
    await link.recv()


def openai_message(value):
    return {"type": "response.output_audio_transcript.delta", "response_id": "r", "delta": value}


def gemini_message(value):
    return {"serverContent": {"outputTranscription": {"text": value}}}


def live_message(value):
    return {"type": "session.output_transcript.delta", "delta": value, "start_ms": 0, "end_ms": 1}


@contextmanager
def service(dialect, variable, greet, message, attack, folder):
    with (
        hostile_socket(greet, attack, message) as port,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setitem(os.environ, variable, KEY)
        patch.setattr(realtime, "RETRY_S", (0.05,))
        # What takes its time on a busy machine must not come after the end of a quiet sample.
        mute = attack in [SOCKET_ATTACKS[name] for name in MUTE]
        idle_s = 0.4 if mute else 5.0
        yield settings_for(dialect, port, **LIMITS, idle_s=idle_s)


def target(dialect, variable, greet, message, *more):
    start = partial(service, dialect, variable, greet, message)
    marks = (pytest.mark.realtime, *more)
    name = f"realtime-{dialect}"
    return Target(name, "realtime", start, SOCKET_ATTACKS, harmless=MUTE, marks=marks)


TARGETS = [
    target("openai", "OPENAI_API_KEY", greet_openai, openai_message),
    target("gemini", "GOOGLE_API_KEY", greet_gemini, gemini_message),
    target("openai_live", "OPENAI_API_KEY", greet_live, live_message),
    # Read by the same code as OpenAI's: with `make test-peers`.
    target("qwen", "DASHSCOPE_API_KEY", greet_openai, openai_message, pytest.mark.peers),
    target("vllm_omni", "NO_KEY", greet_vllm_omni, openai_message, pytest.mark.peers),
]
