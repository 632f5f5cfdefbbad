"""Seconds of random media, and a run of the runner over them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from hfd.duplex.events import Audio, Control, Metric, Text
from hfd.duplex.frames import with_frames_taken
from tests.fakes.minicpmo import DoubleMiniCpmO, Script
from tests.models.roma.helpers import make_units, sample

__all__ = ["controls", "double", "make_units", "metrics", "run", "sound", "text"]


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
