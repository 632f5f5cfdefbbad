"""The promises of `DuplexModel`, kept by every model."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from hfd.data.manifest import Sample
from hfd.duplex.events import Audio, Text
from hfd.errors import HfdError
from hfd.models.registry import create_model
from hfd.stream.run import Run
from hfd.stream.session import run_sample
from tests.contract.case import stream


@pytest.fixture(scope="module")
def first(case, model, clip, tmp_path_factory):
    """What the model says to file A, asked first of all."""
    return stream(model, clip(case.media_s), tmp_path_factory.mktemp("first"))


def assert_same(case, one, other):
    """Equal words and equal sound, however it was cut into chunks."""
    if case.deterministic:
        assert other.text == one.text
        assert np.array_equal(other.pcm, one.pcm)


def test_what_it_needs_is_known_before_it_is_loaded(case, settings, model):
    unloaded = create_model(case.module, settings)
    assert unloaded.capabilities == model.capabilities
    caps = model.capabilities
    assert caps.unit_samples > 0 and caps.output_rate > 0 and caps.max_sessions >= 1
    json.dumps(caps.record())
    json.dumps(model.identity.record())
    unloaded.unload()  # also without a load


def test_an_unknown_setting_is_refused_by_name(case, settings):
    with pytest.raises(HfdError) as refusal:
        create_model(case.module, {**settings, "no_such_setting": 1})
    assert "no_such_setting" in str(refusal.value)


def test_it_speaks_in_pieces_and_only_while_it_may(case, model, first):
    assert not first.early, "text or sound before the first unit"
    assert not first.late, "something was emitted after the end"
    assert not first.wrong_input, "an output depends on a unit that was not pushed yet"
    for event in first.events:
        if isinstance(event, Audio):
            assert event.pcm.ndim == 1 and event.pcm.dtype in (np.int16, np.float32)
        if isinstance(event, Text):
            event.delta.encode()  # no half of a surrogate pair
    assert isinstance(first.ending.get("end_reason"), str)
    assert isinstance(first.ending.get("truncated"), bool)
    json.dumps(dict(first.ending))
    if case.speaks:
        assert first.text and np.abs(first.pcm.astype(int)).max() > 33


def test_another_file_in_between_changes_nothing(case, model, clip, first, tmp_path):
    other = stream(model, clip(case.media_s, seed=1), tmp_path)
    again = stream(model, clip(case.media_s), tmp_path)
    assert not other.late and not again.late
    assert_same(case, first, again)


@pytest.mark.parametrize("units", [0, 1, 3])
def test_a_file_that_is_given_up_leaves_nothing_behind(case, model, clip, first, tmp_path, units):
    stream(model, clip(case.media_s, seed=2), tmp_path, units=units)
    assert_same(case, first, stream(model, clip(case.media_s), tmp_path))


@pytest.mark.parametrize("number", [1, 4])
def test_an_error_of_the_receiver_costs_one_sample(case, model, clip, first, tmp_path, number):
    calls = iter(range(1, 10**6))

    def fail(event):
        if next(calls) == number:
            raise OSError("no room left on the disk")

    if len(first.events) < number:
        pytest.skip("it does not emit so many events")
    with pytest.raises(OSError, match="no room left"):
        stream(model, clip(case.media_s), tmp_path, emit=fail)
    assert_same(case, first, stream(model, clip(case.media_s), tmp_path))


def test_silence_is_answered_or_not_but_never_an_error(case, model, clip, tmp_path):
    said = stream(model, clip(case.media_s, silent=True), tmp_path)
    assert not said.late and not said.early


def test_a_file_of_one_unit(case, model, clip, tmp_path):
    shortest = max(1, model.capabilities.unit_samples // 3200) / 5
    assert not stream(model, clip(shortest), tmp_path).late


def test_closing_twice_or_without_a_sample_does_nothing(case, model, clip, first, tmp_path):
    model.close()
    model.close()
    assert_same(case, first, stream(model, clip(case.media_s), tmp_path))


def test_sessions_side_by_side_say_what_one_says_alone(case, model, clip, first, tmp_path):
    if model.capabilities.max_sessions == 1:
        pytest.skip("it runs one file at a time")
    other = stream(model, clip(case.media_s, seed=1), tmp_path)
    sessions = [model, model.share()]
    files = [clip(case.media_s, seed=1), clip(case.media_s)]
    together = threading.Barrier(2)

    def run(session, file):
        folder = tmp_path / file.stem
        folder.mkdir()
        together.wait(60)
        return stream(session, file, folder)

    with ThreadPoolExecutor(2) as threads:
        beside, again = threads.map(run, sessions, files)
    assert_same(case, other, beside)
    assert_same(case, first, again)


def test_the_session_makes_a_whole_result_of_it(case, settings, model, clip, tmp_path):
    shared = Run("model", case.module, settings, 7, model.identity)
    video = clip(case.media_s)
    sample = Sample("样本 1", "other", video, None, case.media_s, {}, 1)
    result = run_sample(model, shared, sample, tmp_path, fingerprint="f" * 64)
    assert {"result.json", "assistant_audio.wav", "trace.jsonl.gz", "provenance.json"} <= {
        path.name for path in tmp_path.iterdir()
    }
    assert result["status"] == ("ok" if case.speaks else result["status"])
