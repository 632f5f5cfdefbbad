"""Every dialect in the contract suite, each against its reference service."""

import os
from contextlib import contextmanager
from functools import partial

import pytest

from tests.contract.case import Case
from tests.models.realtime.conftest import KEY, services, settings_for


@contextmanager
def peer(dialect, variable, folder):
    with services(folder) as port, pytest.MonkeyPatch.context() as patch:
        patch.setitem(os.environ, variable, KEY)
        yield settings_for(dialect, port, "quick", idle_s=0.3)


def case(dialect, variable, deterministic=True):
    return Case(
        f"realtime {dialect}",
        "realtime",
        partial(peer, dialect, variable),
        deterministic=deterministic,
        media_s=0.8,
        marks=(pytest.mark.realtime,),
    )


CASES = [
    case("openai", "OPENAI_API_KEY"),
    case("qwen", "DASHSCOPE_API_KEY"),
    case("gemini", "GOOGLE_API_KEY"),
    case("openai_live", "OPENAI_API_KEY", deterministic=False),  # its silence may be shortened
]
