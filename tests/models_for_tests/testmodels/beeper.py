"""A model that counts seconds aloud, or keeps silent; it can be told to break in known ways.

Settings: ``speak`` (one word and a beep each second; default true), ``unit_ms`` (default 480),
``pace_s`` (seconds it thinks at each unit), ``most_sessions`` (side by side; default 8),
``load_s``, ``note`` (repeated in its errors), ``env``,
``broken_start`` (what keeps it from loading), ``calls`` (file that gets a line for each
load and each sample begun and ended), ``faults`` (JSON file, read at every sample, so that a fault
can be mended without a change of settings: ``{kind: [sample ids]}`` with the kinds of `_FAULTS`,
or ``hold``: the sample goes on once it is no longer named; or ``hang``: the first time, for ever).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from hfd.duplex.events import Audio, Text
from hfd.duplex.model import (
    Capabilities,
    DuplexModel,
    Emit,
    Identity,
    ModelBroken,
    SampleInfo,
)
from hfd.duplex.units import Unit
from hfd.errors import HfdError
from hfd.models.settings import make_settings

RATE = 16_000
HOLD_LIMIT_S = 600
"""So that a worker whose test has failed does not stay for ever."""


@dataclass(frozen=True)
class Settings:
    speak: bool = True
    unit_ms: int = 480
    pace_s: float = 0.0
    most_sessions: int = 8
    load_s: float = 0.0
    calls: str | None = None
    faults: str | None = None
    temperature: float = 0.0
    note: str = ""
    env: dict[str, Any] = field(default_factory=dict)
    broken_start: str = ""


def _segfault() -> None:
    os.kill(os.getpid(), 11)


def _run_out_of_memory() -> None:
    blocks = []
    for _ in range(20):  # 2.5 GiB in a few seconds, then give up
        blocks.append(np.ones(2**24))
        time.sleep(0.3)
    raise MemoryError("the test's allowance is used up")


def _raise(error: Exception):
    def fault() -> None:
        raise error

    return fault


_FAULTS = {
    "error": _raise(ValueError("this sample cannot be answered")),
    "cuda": _raise(RuntimeError("CUDA error: an illegal memory access was encountered")),
    "broken": _raise(ModelBroken("the server is gone")),
    "segfault": _segfault,
    "exit": lambda: os._exit(9),
    "memory": _run_out_of_memory,
}


class Beeper(DuplexModel):
    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = make_settings(Settings, settings)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            unit_samples=self._settings.unit_ms * 16,
            output_rate=RATE,
            clock="virtual",
            voice_origin="native_talker",
            max_sessions=self._settings.most_sessions,
        )

    def share(self) -> Beeper:
        return Beeper(vars(self._settings))

    def load(self) -> Identity:
        time.sleep(self._settings.load_s)
        if self._settings.broken_start:
            self._note("load", "")
            raise HfdError(self._settings.broken_start, field="settings.broken_start")
        self._note("load", "")
        return Identity("beeper", None)

    def open(self, sample: SampleInfo, emit: Emit) -> None:
        self._sample, self._emit, self._second = sample, emit, 0
        self._note("begin", sample.sample_id)

    def push(self, unit: Unit) -> None:
        if unit.index == 1:
            self._break()
        time.sleep(self._settings.pace_s)
        while self._settings.speak and unit.t1 >= self._second + 1:
            self._second += 1
            self._emit(Text(f"{self._second} "))
            beep = np.sin(np.arange(RATE // 5) * 2 * np.pi * 440 / RATE)
            self._emit(Audio((beep * 8000).astype(np.int16)))

    def finish(self) -> Mapping[str, Any]:
        self._note("end", self._sample.sample_id)
        return {"end_reason": "media_end", "truncated": False}

    def _break(self) -> None:
        for kind, fault in _FAULTS.items():
            if self._is_named(kind):
                if self._settings.note:
                    raise ValueError(f"this sample cannot be answered by {self._settings.note}")
                fault()
        if self._is_named("hang") and self._times_begun() == 1:
            time.sleep(300)
        deadline = time.monotonic() + HOLD_LIMIT_S
        while self._is_named("hold") and time.monotonic() < deadline:
            time.sleep(0.02)

    def _is_named(self, kind: str) -> bool:
        if not self._settings.faults:
            return False
        faults = json.loads(Path(self._settings.faults).read_text())
        return self._sample.sample_id in faults.get(kind, ())

    def _times_begun(self) -> int:
        lines = map(json.loads, Path(self._settings.calls).read_text().splitlines())
        return sum(line[:2] == ["begin", self._sample.sample_id] for line in lines)

    def _note(self, what: str, sample_id: str) -> None:
        if self._settings.calls:
            with Path(self._settings.calls).open("a") as log:
                log.write(json.dumps([what, sample_id, os.getpid(), time.time()]) + "\n")


MODEL = Beeper
