"""The realtime client under attack, in two dialects: OpenAI's (text messages) and Gemini's."""

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

LIMITS = {"idle_s": 0.4, "stall_s": 1.0, "setup_s": 3, "drain_max_s": 2.0}
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


def openai_message(value):
    return {"type": "response.output_audio_transcript.delta", "response_id": "r", "delta": value}


def gemini_message(value):
    return {"serverContent": {"outputTranscription": {"text": value}}}


@contextmanager
def service(dialect, variable, greet, message, attack, folder):
    with (
        hostile_socket(greet, attack, message) as port,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setitem(os.environ, variable, KEY)
        patch.setattr(realtime, "RETRY_S", (0.05,))
        yield settings_for(dialect, port, **LIMITS)


def target(dialect, variable, greet, message):
    start = partial(service, dialect, variable, greet, message)
    marks = (pytest.mark.realtime,)
    name = f"realtime-{dialect}"
    return Target(name, "realtime", start, SOCKET_ATTACKS, harmless=MUTE, marks=marks)


TARGETS = [
    target("openai", "OPENAI_API_KEY", greet_openai, openai_message),
    target("gemini", "GOOGLE_API_KEY", greet_gemini, gemini_message),
]
