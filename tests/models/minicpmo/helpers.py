"""Seconds of random media, and a run of the runner over them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import av
import numpy as np

from hfd.duplex.events import Audio, Control, Metric, Text
from hfd.duplex.frames import with_frames_taken
from hfd.duplex.model import SampleInfo
from hfd.duplex.units import Frame, Unit
from tests.fakes.minicpmo import DoubleMiniCpmO, Script


def make_units(count, *, width=320, height=180, seed=0, frames=5) -> list[Unit]:
    """`count` seconds of noise: frames at 5 fps and sound at 16 kHz."""
    random = np.random.default_rng(seed)
    units = []
    for index in range(count):
        shown = []
        for number in range(5 * index, 5 * index + frames):
            rgb = random.integers(0, 256, (height, width, 3), dtype=np.uint8)
            shown.append(Frame(number, av.VideoFrame.from_ndarray(rgb)))
        pcm = (0.1 * random.standard_normal(16_000)).astype(np.float32)
        units.append(Unit(index, 16_000 * index, pcm, tuple(shown), 16_000, index == count - 1))
    return units


def sample(units, sample_id="one", seed=7) -> SampleInfo:
    picture = units[0].frames[0].image
    size = picture.width, picture.height
    return SampleInfo(sample_id, float(len(units)), *size, seed, Path("unused"))


def comparable(events) -> list[Any]:
    """Events as plain values: sound by its bytes, metrics without the seconds they took."""
    plain: list[Any] = []
    for event in events:
        if isinstance(event, Audio):
            plain.append(("audio", event.pcm.tobytes()))
        elif isinstance(event, Metric):
            values = {key: v for key, v in event.values.items() if not key.endswith("_s")}
            plain.append((event.name, values))
        else:
            plain.append((type(event).__name__, event))
    return plain


def double(
    units: Sequence[Sequence[int]], tokens: Sequence[str] = (), **more: Any
) -> DoubleMiniCpmO:
    """A loaded runner over a double that decodes these ids; settings and script values by name."""
    known = Script.__dataclass_fields__
    model = DoubleMiniCpmO({k: v for k, v in more.items() if k not in known})
    model.script = Script(units, **{k: v for k, v in more.items() if k in known})
    model.more_tokens = tokens
    model.load()
    return model


def run(model, units, **info) -> tuple[list[list[Any]], dict[str, Any]]:
    """Feed all units; everything the model emitted, by unit (the last entry is `finish`)."""
    events: list[list[Any]] = [[] for _ in range(len(units) + 1)]
    at = itertools.count()
    here = next(at)
    model.open(sample(units, **info), lambda event: events[here].append(event))
    for unit in with_frames_taken(units, model.capabilities.frame_rule):
        model.push(unit)
        here = next(at)
    ending = model.finish()
    model.close()
    return events, dict(ending)


def text(events) -> str:
    return "".join(e.delta for unit in events for e in unit if isinstance(e, Text))


def sound(events) -> np.ndarray:
    pcm = [e.pcm for unit in events for e in unit if isinstance(e, Audio)]
    return np.concatenate(pcm) if pcm else np.zeros(0, np.float32)


def controls(events) -> list[list[str]]:
    return [[str(e.kind) for e in unit if isinstance(e, Control)] for unit in events]


def metrics(events, name: str) -> list[dict[str, Any]]:
    found = (e for unit in events for e in unit if isinstance(e, Metric) and e.name == name)
    return [dict(e.values) for e in found]
