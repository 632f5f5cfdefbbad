"""Hostile peers: whatever a server does, a sample fails by name and in time."""

from __future__ import annotations

import importlib
import resource
import threading
import time
from pathlib import Path

import pytest

from hfd.duplex.model import ModelBroken
from hfd.errors import HfdError
from hfd.models.registry import create_model
from tests.contract.case import stream

TESTS = Path(__file__).parents[1]
MOST_MIB = 400
"""How much memory one attack may make the client take."""
SERVERS = ("process_request_thread", "serve_forever", "_accept", "_serve", "run_until_complete")
"""Functions in which the threads of fake servers run."""


def pytest_generate_tests(metafunc):
    if "target" not in metafunc.fixturenames:
        return
    pairs = []
    # A model from outside is asked alone: which servers it has, only its `hostile.py` could say.
    files = [] if metafunc.config.getoption("--model") else TESTS.glob("models/*/hostile.py")
    for file in sorted(files):
        name = ".".join(file.relative_to(TESTS.parent).with_suffix("").parts)
        for target in importlib.import_module(name).TARGETS:
            pairs += [
                pytest.param(target, attack, id=f"{target.name}-{attack}", marks=target.marks)
                for attack in target.attacks
            ]
    metafunc.parametrize(("target", "attack"), pairs)


def client_threads() -> set[threading.Thread]:
    return {t for t in threading.enumerate() if not any(name in t.name for name in SERVERS)}


def peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def test_a_hostile_server_costs_one_sample_and_no_more(target, attack, clip, tmp_path):
    threads, before = client_threads(), peak_mib()
    video = clip(target.media_s)
    with target.under_attack(target.attacks[attack], tmp_path) as settings:
        model = create_model(target.module, settings)
        began = time.monotonic()
        failure = None
        try:
            model.load()
            began = time.monotonic()
            said = stream(model, video, tmp_path)
        except (HfdError, ModelBroken) as error:  # anything else is a defect of the client
            failure = error
        finally:
            model.unload()
        took_s = time.monotonic() - began
        for thread in client_threads() - threads:
            thread.join(2)
        left = {thread.name for thread in client_threads() - threads}
    if failure is None:
        assert attack in target.harmless, f"a result came of it: {said.ending}"
    else:
        assert str(failure).strip(), "the failure has no words"
        str(failure).encode()  # and can be written down
    assert took_s < target.limit_s
    assert peak_mib() - before < MOST_MIB
    assert not left, "threads of the client were left behind"
