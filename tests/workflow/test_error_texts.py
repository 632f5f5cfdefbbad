"""What an error says is recorded so that every file and log can hold it and be read again."""

import json
import sys
from pathlib import Path

import pytest

import witness_key
from hfd.data.manifest import Sample
from hfd.jobs.spec import ModelSpec
from hfd.jobs.store import Store
from hfd.jobs.witness import Witness
from hfd.jobs.worker import Shard, run_shard
from hfd.judge.witness import read_log
from tests.stream.conftest import compiled  # noqa: F401  a fixture

MODEL = """
from hfd.duplex.model import Capabilities, DuplexModel, Identity


class Wordy(DuplexModel):
    def __init__(self, settings):
        pass

    @property
    def capabilities(self):
        return Capabilities(1600, 24000, "virtual", "native_talker", secrets=("WORDY_KEY",))

    def load(self):
        return Identity("wordy", None)

    def open(self, sample, emit):
        if sample.sample_id == "long":
            raise RuntimeError("x" * 3990 + "the-secret-key" + "<html>" * 2**19)
        if sample.sample_id == "half":
            raise ValueError("no file named caf\\udce9 \\ud83d")

    def push(self, unit):
        pass

    def finish(self):
        return {}


MODEL = Wordy
"""
NAMES = ("long", "half", "whole")


@pytest.fixture
def ran(compiled, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WORDY_KEY", "the-secret-key")
    monkeypatch.setenv("HFD_PYTHON", sys.executable)
    witness_key.main(["witness"])
    config = {"witness": str(tmp_path / "witness"), "witness_tsa": ""}
    monkeypatch.setenv("HFD_CONFIG", json.dumps(config))
    Path("wordy.py").write_text(MODEL)
    video = compiled("short.mp4", 1)
    samples = [Sample(name, "other", video, None, 0.2, {}, n) for n, name in enumerate(NAMES)]
    spec = ModelSpec("wordy", "wordy", {}, module_path=str(tmp_path))
    store, said = Store(Path(), "wordy"), []
    run_shard(spec, Shard("g0", samples, witness=Witness("wordy")), store, said.append)
    return store, said


def test_a_long_error_is_cut_and_the_witness_s_log_stays_one_chain(ran):
    store, said = ran
    record = json.loads(store.error_file("long").read_text(encoding="utf-8"))
    assert record["error"].startswith("RuntimeError: xxx") and "characters)" in record["error"]
    assert store.error_file("long").stat().st_size < 50_000
    assert max(map(len, said)) < 4100
    written = store.error_file("long").read_text(encoding="utf-8") + "".join(said)
    assert "the-sec" not in written, "a secret was cut in two before it was known as one"
    log = read_log(Path("witness/log.jsonl"), Path("witness/key.pub.pem"), None)
    assert log.problems == []
    kinds = [(e.sample_id, e.kind) for e in log.entries]
    assert kinds == [
        ("long", "begin"), ("long", "error"), ("half", "begin"), ("half", "error"),
        ("whole", "begin"), ("whole", "done"),
    ]  # fmt: skip
    assert Path("witness/log.jsonl").stat().st_size < 20_000


def test_half_characters_of_an_error_are_written_as_what_they_are(ran):
    store, said = ran
    record = json.loads(store.error_file("half").read_text(encoding="utf-8"))
    assert record["error"] == r"ValueError: no file named caf\udce9 \ud83d"
    assert any(r"caf\udce9" in line for line in said)
