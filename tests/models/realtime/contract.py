"""Every dialect in the contract suite: against the reference services, and the open servers."""

import os
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import soundfile

from tests.contract.case import Case
from tests.models.realtime.conftest import KEY, services, settings_for
from tests.models.realtime.peers.conftest import (
    moshi_server,
    moshi_settings,
    vllm_omni_server,
    vllm_omni_settings,
)


@contextmanager
def reference(dialect, variable, folder):
    """The reference service of a dialect, with a key in the environment."""
    with services(folder) as port, pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, variable, KEY)
        yield settings_for(dialect, port, "quick", idle_s=0.2)


@contextmanager
def vllm_omni(folder):
    """vLLM-Omni's own stack; its plugin insists on a voice to speak in."""
    voice = Path(tempfile.mkdtemp(dir=folder)) / "voice.wav"
    soundfile.write(voice, np.zeros(16_000, np.int16), 16_000)
    with vllm_omni_server(folder, 2) as port:
        yield vllm_omni_settings(port, voice, idle_s=0.8)


@contextmanager
def moshi(folder):
    """Moshi's own server with random weights: what it says differs from run to run."""
    with moshi_server(folder) as port:
        yield moshi_settings(port, idle_s=0.5)


def case(dialect, variable, deterministic=True):
    return Case(
        f"realtime {dialect}",
        "realtime",
        partial(reference, dialect, variable),
        deterministic=deterministic,
        media_s=0.6,
        marks=(pytest.mark.realtime,),
    )


PEERS = (pytest.mark.peers, pytest.mark.realtime)  # they take minutes: make test-peers
CASES = [
    case("openai", "OPENAI_API_KEY"),
    case("qwen", "DASHSCOPE_API_KEY"),
    case("gemini", "GOOGLE_API_KEY"),
    case("openai_live", "OPENAI_API_KEY", deterministic=False),  # its silence may be shortened
    Case("realtime vllm-omni", "realtime", vllm_omni, media_s=4.0, marks=PEERS),
    Case("realtime moshi", "realtime", moshi, deterministic=False, media_s=0.8, marks=PEERS),
]
