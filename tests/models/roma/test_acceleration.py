"""Which steps run: only what cannot be captured falls back, and nothing is kept of a failure."""

import gc
import weakref

import pytest
import torch

from hfd.errors import HfdError
from hfd.models.roma import acceleration
from hfd.models.roma.settings import parse_settings
from hfd.models.roma.steps_eager import EagerSteps
from hfd.models.roma.steps_graphs import GraphSteps

pytestmark = pytest.mark.heavy


@pytest.fixture
def failing(parts, monkeypatch):
    """Makes steps on a GPU where warming graphs up fails; notes the graphs' steps."""

    def make(kind, words):
        made = []

        def fail(self):
            made.append(weakref.ref(self))
            raise kind(words)  # a new one: an error holds what it went through

        monkeypatch.setattr(GraphSteps, "warm_up", fail)
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2 * 10**9, 24 * 10**9))
        monkeypatch.setattr(acceleration, "wanted_steps", lambda settings, device: "graphs")
        settings = {"model_path": "x", "device": "cpu", "max_media_s": 90.0}
        return made, lambda: acceleration.make_steps(parts, parse_settings(settings))

    return make


@pytest.mark.parametrize("kind", [torch.OutOfMemoryError, RuntimeError])
def test_too_little_memory_names_the_setting_and_runs_nothing_slower(failing, kind):
    """torch's own error, and what kernels and libraries say in plain ones."""
    made, steps = failing(kind, "CUDA out of memory. Tried to allocate 9 GiB")
    with pytest.raises(HfdError, match=r"is 90 s; .*allocate 9 GiB.*2.0 of 24.0 GB") as told:
        steps()
    assert told.value.field == "settings.max_media_s"
    del told
    gc.collect()
    assert made[0]() is None, "what the failed attempt took is still held"


def test_lack_of_memory_is_seen_behind_the_error_of_an_ended_capture():
    try:
        try:
            raise RuntimeError("CUBLAS_STATUS_ALLOC_FAILED when calling cublasCreate")
        finally:
            raise RuntimeError("operation failed due to a previous error during capture")
    except RuntimeError as error:
        assert "ALLOC_FAILED" in (acceleration.lack_of_memory(error) or "")
    assert acceleration.lack_of_memory(RuntimeError("device-side assert")) is None


def test_what_cannot_be_captured_runs_plainly_and_says_so(failing, capsys):
    made, steps = failing(RuntimeError, "operation not permitted when stream is capturing")
    assert isinstance(found := steps(), EagerSteps) and found.acceleration == "eager"
    assert "no CUDA graphs here" in capsys.readouterr().err
    assert made[0]() is None


def test_any_other_failure_of_a_warm_up_is_shown(failing):
    _, steps = failing(RuntimeError, "a captured step gives other values than the plain one")
    with pytest.raises(RuntimeError, match="other values"):
        steps()
