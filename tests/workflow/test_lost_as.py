"""The worker's error record says whether a service refused, a service failed, or the model did."""

import json
from pathlib import Path

import pytest

from hfd.data.manifest import Sample
from hfd.duplex.model import ModelBroken
from hfd.jobs.spec import ModelSpec
from hfd.jobs.store import Store
from hfd.jobs.worker import Shard, run_shard
from hfd.judge.outcome import STATUSES
from hfd.judge.run import recorded_error
from tests.stream.conftest import compiled  # noqa: F401  a fixture

MODEL = """
from hfd.duplex.model import Capabilities, DuplexModel, Identity, ModelBroken
from hfd.models.http import ServerFailed
from hfd.models.sockets.failures import SampleFailure


class Planted(DuplexModel):
    def __init__(self, settings):
        pass

    @property
    def capabilities(self):
        return Capabilities(1600, 24000, "virtual", "native_talker")

    def load(self):
        return Identity("planted", None)

    def open(self, sample, emit):
        kind = sample.sample_id
        if kind == "memory":
            raise RuntimeError("out of memory")
        if kind == "http":
            raise ServerFailed("503")
        try:
            raise SampleFailure(kind.removesuffix(" for all"), "planted")
        except SampleFailure as failure:
            if kind.endswith("for all"):
                raise ModelBroken(str(failure)) from failure
            raise

    def push(self, unit):
        pass

    def finish(self):
        return {}


MODEL = Planted
"""
EXPECTED = {
    "refused": "refused", "busy": "service_error", "socket_lost": "service_error",
    "not_online": "failed", "http": "service_error", "memory": "failed",
    "refused for all": "refused",
}  # fmt: skip


def test_every_lost_sample_is_counted_by_who_is_at_fault(compiled, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    Path("planted.py").write_text(MODEL)
    video = compiled("short.mp4", 1)
    samples = [Sample(name, "other", video, None, 0.2, {}, n) for n, name in enumerate(EXPECTED)]
    spec = ModelSpec("planted", "planted", {}, module_path=str(tmp_path))
    store = Store(Path(), "planted")
    with pytest.raises(ModelBroken):  # the last one: no other sample could succeed
        run_shard(spec, Shard("g0", samples), store, lambda text: None)
    folder = store.error_file("x").parent
    found = {sample.sample_id: recorded_error(folder, sample)[1] for sample in samples}
    assert found == EXPECTED and set(found.values()) <= set(STATUSES)
    record = json.loads(store.error_file("refused for all").read_text(encoding="utf-8"))
    assert record["kind"] == "ModelBroken" and record["lost_as"] == "refused"
