"""One model that takes part in the contract suite, and how its samples are run there."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hfd.duplex.events import Audio, Event, Text
from hfd.duplex.frames import with_frames_taken
from hfd.duplex.model import DuplexModel, SampleInfo
from hfd.pcm import to_int16
from hfd.stream.clock import make_clock
from hfd.stream.reader import probe, read_units


def no_peer(folder: Path) -> AbstractContextManager[Mapping[str, Any]]:
    """A model that needs neither servers nor settings."""
    return nullcontext({})


@dataclass(frozen=True)
class Case:
    """A model in the suite.

    Attributes:
        name: what the tests are called.
        module: as in config/models.yaml.
        peer: given an empty folder, starts what the model talks to (a server, a tiny snapshot)
            and gives the settings with which the model reaches it; ends it on exit.
        speaks: whether it answers the suite's recordings (noise) with sound.
        deterministic: whether equal input gives equal bytes.
        media_s: length of most files; keep it short for models that run in real time.
        marks: pytest markers, such as ``heavy``.
    """

    name: str
    module: str
    peer: Callable[[Path], AbstractContextManager[Mapping[str, Any]]] = no_peer
    speaks: bool = True
    deterministic: bool = True
    media_s: float = 3.2
    marks: tuple[pytest.MarkDecorator, ...] = ()


@dataclass
class Said:
    """Everything that a model emitted over one sample, in order."""

    events: list[Event] = field(default_factory=list)
    pushed: int = -1
    over: bool = False
    late: list[Event] = field(default_factory=list)
    early: list[Event] = field(default_factory=list)
    wrong_input: list[Event] = field(default_factory=list)
    ending: Mapping[str, Any] = field(default_factory=dict)

    def emit(self, event: Event) -> None:
        """The `Emit` that the model is given; notes what it must not do."""
        if self.over:
            self.late.append(event)
        if self.pushed < 0 and isinstance(event, Text | Audio):
            self.early.append(event)
        if event.input_seq is not None and event.input_seq > self.pushed:
            self.wrong_input.append(event)
        self.events.append(event)

    @property
    def text(self) -> str:
        return "".join(event.delta for event in self.events if isinstance(event, Text))

    @property
    def pcm(self) -> np.ndarray:
        """All sound, int16 [samples]."""
        chunks = [e.pcm for e in self.events if isinstance(e, Audio)]
        as_int16 = [c if c.dtype == np.int16 else to_int16(c) for c in chunks]
        return np.concatenate(as_int16) if as_int16 else np.zeros(0, np.int16)


def stream(
    model: DuplexModel,
    video: Path,
    scratch: Path,
    *,
    seed: int = 7,
    units: int | None = None,
    emit: Callable[[Event], None] | None = None,
) -> Said:
    """One sample in the order of calls that the interface states; `close` in every case.

    Args:
        model: loaded.
        video: a compiled file.
        scratch: a folder for the model's side files.
        seed: the sample's seed.
        units: give up after so many units, without `finish`; None: the whole file.
        emit: called with each event before it is noted; may raise.
    """
    said, caps, info = Said(), model.capabilities, probe(video)

    def take(event: Event) -> None:
        if emit is not None:
            emit(event)
        said.emit(event)

    side = Path(tempfile.mkdtemp(dir=scratch))
    sample = SampleInfo("样本 1", info.seconds, info.width, info.height, seed, side)
    try:
        model.open(sample, take)
        clock = make_clock(caps.clock)
        given = with_frames_taken(read_units(video, caps.unit_samples, info), caps.frame_rule)
        for unit in given:
            if unit.index == units:
                return said
            clock.begin(unit.t1)
            said.pushed = unit.index
            model.push(unit)
        clock.begin(info.seconds)
        said.ending = model.finish()
    finally:
        said.over = units is None
        model.close()
    time.sleep(0.2)  # whoever still wants to speak has had time for it
    return said
