"""Reference servers on real sockets, short compiled files, and runs through the real session."""

from __future__ import annotations

import gzip
import json
import time
from pathlib import Path
from types import SimpleNamespace

import av
import numpy as np
import pytest

from hfd.data.manifest import Sample
from hfd.duplex.frames import with_frames_taken
from hfd.duplex.model import SampleInfo
from hfd.duplex.units import Frame, Unit
from hfd.models.registry import create_model
from hfd.stream.run import Run
from hfd.stream.session import run_sample
from tests.fakes.duplexomni import Talker, Thinker
from tests.stream.clips import picture
from tests.stream.conftest import compiled  # noqa: F401  a fixture

PICTURES = 24
"""Length of most test files: 4.8 s, ten slices."""


def settings_for(thinker, talker, **more):
    stack = {"thinker_url": thinker.url, "talker_url": talker.url}
    return {"stack": stack, "clock": "virtual", "picture_long_side": 64, **more}


@pytest.fixture
def servers():
    """Make reference servers that end with the test."""
    made = []

    def make(kind, *args, **options):
        made.append(kind(*args, **options))
        return made[-1]

    yield make
    for server in made:
        server.die()


@pytest.fixture
def model_of(servers):
    """A loaded model on a pair of reference servers."""

    def make(thinker=None, talker=None, **settings):
        thinker = thinker or servers(Thinker)
        talker = talker or servers(Talker)
        model = create_model("duplexomni", settings_for(thinker, talker, **settings))
        model.load()
        return model

    return make


@pytest.fixture
def converse(servers, compiled, tmp_path):  # noqa: F811
    """Run one compiled file through the session; gives result, provenance, trace and wav."""

    def run(thinker=None, talker=None, *, pictures=PICTURES, **settings):
        thinker = thinker or servers(Thinker)
        talker = talker or servers(Talker)
        settings = settings_for(thinker, talker, **settings)
        return session(settings, compiled(f"{pictures}.mp4", pictures), tmp_path / "out")

    return run


def session(settings, video: Path, out: Path):
    """One sample through `run_sample`, with everything it left behind."""
    out.mkdir(exist_ok=True)
    model = create_model("duplexomni", settings)
    try:
        shared = Run("duplexomni", "duplexomni", settings, 1, model.load())
        sample = Sample("样 本 1", "other", video, None, 4.8, {}, 1)
        result = run_sample(model, shared, sample, out, fingerprint="f" * 64)
    finally:
        model.unload()
    return SimpleNamespace(
        result=result,
        provenance=json.loads((out / "provenance.json").read_text()),
        trace=read_trace(out),
        out=out,
    )


def read_trace(out: Path):
    with gzip.open(out / "trace.jsonl.gz", "rt") as lines:
        return [json.loads(line) for line in lines]


def of_kind(trace, kind):
    return [line for line in trace if line["kind"] == kind]


def slice_facts(trace):
    """The metric of every slice, in order."""
    return [
        line["values"]
        for line in sorted(of_kind(trace, "metric"), key=lambda line: line["input_seq"])
        if line["name"] == "slice"
    ]


def units(count, seed=3, new_after=None):
    """`count` slices of noise with a frame every 0.2 s; the content changes after `new_after`."""
    rng = np.random.default_rng(seed)
    made = []
    for index in range(count):
        if index == new_after:
            rng = np.random.default_rng(seed + 1)
        start = index * 7680
        pcm = rng.integers(-9000, 9000, 7680).astype(np.float32) / 32768
        shift = 100 if new_after is not None and index >= new_after else 0
        numbers = range(-(-start // 3200), -(-(start + 7680) // 3200))
        frames = tuple(Frame(number, _video_frame(number + shift)) for number in numbers)
        made.append(Unit(index, start, pcm, frames, 7680, index == count - 1))
    return made


def _video_frame(number):
    return av.VideoFrame.from_ndarray(np.ascontiguousarray(picture(number)), format="rgb24")


def drive(model, slices, tmp_path, media_s=None):
    """Push slices without a session, when they are due where the clock is ``arrival``.

    Gives the events in the order in which they came.
    """
    events = []
    seconds = media_s or len(slices) * 0.48
    model.open(SampleInfo("s", seconds, 64, 48, 5, tmp_path), events.append)
    try:
        began = time.monotonic()
        for unit in with_frames_taken(slices, model.capabilities.frame_rule):
            if model.capabilities.clock == "arrival":
                time.sleep(max(0.0, began + unit.t1 - time.monotonic()))
            model.push(unit)
        model.finish()
    finally:
        model.close()
    return events
