"""The measurement card and rule A17: planted models that compute anew, or on top of a cache."""

import time
from dataclasses import asdict

import numpy as np
import pytest

from hfd.data.manifest import Sample
from hfd.duplex.events import Audio, Text
from hfd.duplex.model import Capabilities, DuplexModel, Identity
from hfd.files import json_text
from hfd.judge.changes import changes, flipped
from hfd.judge.folder import read_folder
from hfd.judge.measurement_card import card_markdown, growth_estimate, measurement_card
from hfd.judge.measures import growth, trace_measures
from hfd.judge.rules.rule import SetCase
from hfd.judge.run_facts import run_facts
from hfd.judge.sample import Record
from hfd.stream.run import Run
from hfd.stream.session import run_sample
from tests.stream.conftest import compiled  # noqa: F401  a fixture

UNITS = 16
PROVENANCE = {
    "attempt": 1,
    "clock": {"wall_anchor": "2026-01-01T00:00:00+00:00"},
    "contract": {"unit_samples": 16_000, "clock": "virtual", "voice_origin": "native_talker"},
    "model": {
        "name": "m",
        "module": "m",
        "weights": "a",
        "dtypes": {"bfloat16": 1},
        "settings": {},
    },
    "env": {"gpu": ["Card, 1.0, 40 GiB"], "cpus": 4},
}


class Listener(DuplexModel):
    """Computes a unit in 20 ms, or 8 ms for each second so far (`anew`); speaks in unit 9."""

    def __init__(self, settings):
        self.anew = settings["anew"]

    @property
    def capabilities(self):
        return Capabilities(16_000, 24_000, "virtual", "native_talker", frame_rule=None)

    def load(self):
        return Identity("listener", "a" * 64, dtypes={"bfloat16": 1})

    def open(self, sample, emit):
        self.emit = emit

    def push(self, unit):
        began = time.monotonic()
        time.sleep(0.008 * (unit.index + 1) if self.anew else 0.02)
        if unit.index == 9:
            self.text_s = time.monotonic() - began
            self.emit(Text("Yes."))
            time.sleep(0.03)
            self.audio_s = time.monotonic() - began
            self.emit(Audio(np.full(4800, 900, np.int16)))

    def finish(self):
        return {"end_reason": "input_done", "truncated": False}


@pytest.fixture(params=[False, True], ids=["cached", "anew"])
def ran(request, compiled, tmp_path):  # noqa: F811
    """The trace of a run, and its model; made again where a test is tried again."""
    settings = {"anew": request.param}
    model, out = Listener(settings), tmp_path / "ran"
    out.mkdir()
    video = compiled("card.mp4", 5 * UNITS)
    sample = Sample("s", "other", video, None, float(UNITS), {}, 1)
    run = Run("listener", "listener", settings, 1, model.load())
    run_sample(model, run, sample, out, fingerprint="f" * 64)
    return read_folder(out), model


def record_of(folder, number=0):
    facts = {"clock": "virtual", "measures": trace_measures(folder.trace, 8.0), "cluster": number}
    facts |= {"run": {}, "compute_s": folder.result.value["rtf"]["compute_s"]}
    return Record("m", str(number), "other", "ok", "", {"A1": None}, {}, {}, facts)


@pytest.mark.realtime
def test_a_model_that_computes_everything_anew_is_seen(ran):
    folder, model = ran
    found = trace_measures(folder.trace, None)["growth"]
    assert found > 0.6 if model.anew else abs(found) < 0.4


@pytest.mark.realtime
def test_latencies_begin_and_end_where_the_card_says(ran):
    folder, model = ran
    found = trace_measures(folder.trace, 8.0)
    assert found["unit_to_text_s"] == pytest.approx(model.text_s, abs=0.01)
    assert found["unit_to_audio_s"] == pytest.approx(model.audio_s, abs=0.01)
    assert found["frames_per_s"] == 0 and list(found["chunk_s"]) == [0.2]


@pytest.mark.parametrize("slope, status", [(0.0, "pass"), (0.1, "pass"), (1.0, "fail")])
def test_rule_a17_judges_the_set(slope, status):
    records = []
    random = np.random.default_rng(0)
    for k in range(8):
        costs = [(t, 0.02 * t**slope * random.uniform(0.8, 1.25), False) for t in range(1, 40)]
        facts = {"clock": "virtual", "measures": {"growth": growth(costs)}, "cluster": str(k)}
        records.append(Record("m", str(k), "other", "ok", "", {"A1": None}, {}, {}, facts))
    verdict = a17(records)
    assert verdict.status == status, verdict.reason
    # Two samples on a machine that grows busier look like a model that computes everything anew.
    assert a17(records[:4]).status == "not_evidenced"
    # One sample, or the samples of one speaker, have no interval: neither a verdict nor a card
    # with an infinite number in it, which JSON does not know.
    for record in records:
        record.facts["cluster"] = "0"
    for few in (records[:1], records):
        assert a17(few).status == "not_evidenced"
        found = asdict(growth_estimate(few))
        assert found["low"] is None and json_text(found)


def test_rule_a17_says_nothing_of_a_server_or_of_too_little():
    short = [(t, 0.02, False) for t in range(4)]
    facts = {"clock": "virtual", "measures": {"growth": growth(short)}}
    alone = Record("m", "s", "other", "ok", "", {"A1": None}, {}, {}, facts)
    assert a17([alone]).status == "not_evidenced"
    alone.facts["clock"] = "arrival"
    assert "server" in a17([alone]).reason


def a17(records):
    from hfd.judge.probe import read_probes
    from hfd.judge.rules import a17_incremental
    from hfd.judge.verdict import combined

    case = SetCase(records, [], None, read_probes(None, "m"))
    return a17_incremental.RULE.of_model(case, combined([]))


def test_the_card_is_a_page_with_every_boundary(ran):
    folder, _ = ran
    record = record_of(folder)
    record.facts["run"] = run_facts(PROVENANCE)
    card = measurement_card([record], {})
    text = card_markdown("listener", card)
    assert "| Hardware | 1 x Card |" in text and "end of the unit that the text depends on" in text
    assert card["latencies_s"]["codec"] is None and card["transport"]["lag_s"]["n"] == UNITS


def test_two_runs_are_compared_by_what_changed_and_what_flipped():
    def made(settings, takes_over):
        model = PROVENANCE["model"] | {"settings": settings}
        run = run_facts(PROVENANCE | {"model": model})
        return [
            Record("m", str(k), "hesitation", "ok", "", {"A1": None},
                   {"h1_gap_takeover": takes_over and k == 0, "h11_responded": True}, {},
                   {"run": run, "text": str(k)})
            for k in range(3)
        ]  # fmt: skip

    old, new = made({"threshold": 0.5}, True), made({"threshold": 0.7, "new": 1}, False)
    assert changes(old, new) == {"settings.threshold": [0.5, 0.7], "settings.new": [None, 1]}
    assert flipped(old, new) == [
        {"sample_id": "0", "task": "hesitation", "first": "gap_takeover", "second": "ok",
         "same_text": True}
    ]  # fmt: skip
