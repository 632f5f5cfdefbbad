"""Sessions on one set of weights: each file's texts, codes and samples are those of a run alone."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import pytest

from hfd.models.roma.gate import Gate
from hfd.models.roma.model import Roma
from hfd.models.roma.vocoder import Vocoder
from tests.models.roma.helpers import TINY, comparable, make_units, sample

pytestmark = pytest.mark.heavy
WIDTHS = {"a": 320, "b": 160, "c": 320}


@pytest.fixture
def codes(monkeypatch):
    """The codes that each thread's vocoders were given."""
    found = {}
    add = Vocoder.add

    def noted(vocoder, code):
        found.setdefault(threading.get_ident(), []).append(code)
        add(vocoder, code)

    monkeypatch.setattr(Vocoder, "add", noted)
    return found


def run(model, units, codes, together=None):
    """A whole file; all sessions pass `together` before every unit, so that they do overlap."""
    events = []
    model.open(sample(units, sample_id="one"), events.append)
    for unit in units:
        if together is not None:
            together.wait(60)
        model.push(unit)
    model.finish()
    model.close()
    return comparable(events), codes.pop(threading.get_ident())


@pytest.mark.parametrize("kind", ["eager", "graphs"])
def test_three_sessions_side_by_side_say_what_each_says_alone(parts, codes, kind, monkeypatch):
    monkeypatch.setattr(Roma, "load_parts", lambda self: parts)
    files = {name: make_units(3, seed=n, width=w) for n, (name, w) in enumerate(WIDTHS.items())}
    model = Roma({"model_path": "given", "threshold": 0.0, "acceleration": kind, **TINY})
    model.sessions = 3
    model.load()
    alone = {name: run(model, units, codes) for name, units in files.items()}
    assert all(spoken for _, spoken in alone.values())
    sessions = [model, model.share(), model.share()]
    together = threading.Barrier(3)
    with ThreadPoolExecutor(3) as threads:
        jobs = {
            name: threads.submit(run, session, files[name], codes, together)
            for session, name in zip(sessions, "bca", strict=True)
        }
    assert {name: job.result() for name, job in jobs.items()} == alone


def test_nobody_runs_while_one_is_alone():
    gate, seen, failed = Gate(), [], []

    def others():
        for _ in range(200):
            with gate.running():
                seen.append(1)
                if alone.is_set():
                    failed.append("somebody was alone")
                seen.pop()

    def captures(from_inside):
        for _ in range(20):
            with gate.running() if from_inside else nullcontext(), gate.alone():
                alone.set()
                if seen:
                    failed.append("somebody was running")
                time.sleep(0.0005)
                alone.clear()

    alone = threading.Event()
    with ThreadPoolExecutor(5) as threads:
        jobs = [threads.submit(others) for _ in range(3)]
        jobs += [threads.submit(captures, inside) for inside in (True, False)]
        for job in jobs:
            job.result(60)
    assert failed == []
