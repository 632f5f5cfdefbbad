"""Seconds of random media, and a run of the model over them."""

import itertools
from pathlib import Path

import av
import numpy as np

from hfd.duplex.events import Audio, Metric
from hfd.duplex.frames import with_frames_taken
from hfd.duplex.model import SampleInfo
from hfd.duplex.units import Frame, Unit
from hfd.models.roma.unit import FRAME_RULE

TINY = {"device": "cpu", "num_steps": 2, "max_codes": 120, "tail_tokens": 30}
"""Settings that keep the tiny model quick."""


def make_units(count, *, width=320, height=180, seed=0, pictures=5):
    """`count` seconds of noise: video frames at 5 fps and sound at 16 kHz."""
    random = np.random.default_rng(seed)
    units = []
    for index in range(count):
        frames = []
        for number in range(5 * index, 5 * index + pictures):
            rgb = random.integers(0, 256, (height, width, 3), dtype=np.uint8)
            frames.append(Frame(number, av.VideoFrame.from_ndarray(rgb)))
        pcm = (0.1 * random.standard_normal(16_000)).astype(np.float32)
        units.append(Unit(index, 16_000 * index, pcm, tuple(frames), 16_000, index == count - 1))
    return list(with_frames_taken(units, FRAME_RULE))


def sample(units, sample_id="one", seed=7):
    picture = units[0].frames[0].image
    return SampleInfo(
        sample_id, float(len(units)), picture.width, picture.height, seed, Path("unused")
    )


def run(model, units, **info):
    """Feed all units; everything the model emitted, by unit (the last entry is `finish`)."""
    events = [[] for _ in range(len(units) + 1)]
    at = itertools.count()
    here = next(at)
    model.open(sample(units, **info), lambda event: events[here].append(event))
    for unit in units:
        model.push(unit)
        here = next(at)
    ending = model.finish()
    model.close()
    return events, ending


def comparable(events):
    """Events as plain values: sound by its bytes, metrics without the seconds they took."""
    plain = []
    for event in events:
        if isinstance(event, Audio):
            plain.append(("audio", event.pcm.tobytes()))
        elif isinstance(event, Metric):
            values = {key: v for key, v in event.values.items() if not key.endswith("_s")}
            plain.append((event.name, values))
        else:
            plain.append((type(event).__name__, event))
    return plain


def sound(events):
    """All sound of a run, one array."""
    pcm = [e.pcm for unit in events for e in unit if isinstance(e, Audio)]
    return np.concatenate(pcm) if pcm else np.zeros(0, np.float32)
