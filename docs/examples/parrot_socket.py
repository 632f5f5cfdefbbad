"""A websocket model in about a hundred lines: the worked example of CONTRIBUTING.md.

The parrot's server takes a binary message of int16 PCM for each unit and ``{"type": "done"}`` after
the last; it answers with ``{"type": "text", "delta": ...}``, binary PCM, and ``{"type": "end"}``.
Connection, pacing, limits, failures and recording are the shared core's (`hfd.models.sockets`);
what is left for a model is what it sends and what it makes of what comes.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hfd.duplex.events import Audio, Text
from hfd.duplex.model import Capabilities, DuplexModel, Emit, Identity, ModelBroken, SampleInfo
from hfd.duplex.units import Unit
from hfd.models.settings import make_settings
from hfd.models.sockets.exchange import Exchange
from hfd.models.sockets.failures import SampleFailure
from hfd.models.sockets.link import Link
from hfd.models.sockets.loop import LoopThread
from hfd.models.sockets.recording import Recording
from hfd.models.sockets.sender import UnitSender
from hfd.pcm import to_int16


@dataclass(frozen=True)
class Settings:
    """``models.<name>.settings`` of config/models.yaml."""

    url: str
    connect_s: float = 10.0
    max_lag_s: float = 0.5
    drain_max_s: float = 30.0


class Parrot(DuplexModel):
    """Says what it hears."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = make_settings(Settings, settings)
        self._sockets: LoopThread | None = None
        self._talk: _Talk | None = None

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            unit_samples=1600,
            output_rate=16_000,
            clock="arrival",
            voice_origin="native_talker",
            frame_rule=None,
        )

    def load(self) -> Identity:
        self._sockets = LoopThread("parrot-sockets")
        return Identity("parrot", None)

    def open(self, sample: SampleInfo, emit: Emit) -> None:
        assert self._sockets is not None
        try:
            self._talk = self._sockets.run(_Talk.begin(self._settings, sample, emit))
        except SampleFailure as failure:
            raise ModelBroken(str(failure)) if failure.server_at_fault else failure from failure

    def push(self, unit: Unit) -> None:
        assert self._talk is not None
        if self._talk.exchange.failure is not None:
            raise self._talk.exchange.failure
        self._talk.sender.push(unit)

    def finish(self) -> Mapping[str, Any]:
        assert self._talk is not None and self._sockets is not None
        return self._sockets.run(self._talk.finish())

    def close(self) -> None:
        if self._talk is not None and self._sockets is not None:
            self._sockets.run(self._talk.close())
            self._talk = None

    def unload(self) -> None:
        if self._sockets is not None:
            self._sockets.stop()
            self._sockets = None


class _Talk:
    """One sample; lives in the sockets' thread."""

    @classmethod
    async def begin(cls, settings: Settings, sample: SampleInfo, emit: Emit) -> _Talk:
        talk = cls(settings, sample, emit)
        try:
            async with talk.link.setup(settings.connect_s):
                await talk.link.connect(settings.url)
        except SampleFailure:
            await talk.close()
            raise
        talk.exchange.spawn(talk.sender.run())
        talk.exchange.spawn(talk.read())
        return talk

    def __init__(self, settings: Settings, sample: SampleInfo, emit: Emit) -> None:
        self.exchange = Exchange(Recording(None))
        self.link = Link("", self.exchange)
        self.sender = UnitSender(
            self.link,
            self.exchange,
            self.encode,
            lambda: ['{"type": "done"}'],
            media_s=sample.media_s,
            max_lag_s=settings.max_lag_s,
            drain_max_s=settings.drain_max_s,
        )
        self.emit = emit
        self.ended = asyncio.Event()

    async def encode(self, unit: Unit) -> list[str | bytes]:
        return [to_int16(unit.pcm).tobytes()]

    async def read(self) -> None:
        async for message, _ in self.link.messages():
            heard = self.sender.begun - 1  # an answer cannot depend on a later unit
            if isinstance(message, bytes):
                self.emit(Audio(np.frombuffer(message, "<i2"), heard))
            elif (said := json.loads(message))["type"] == "text":
                self.emit(Text(said["delta"], heard))
            elif said["type"] == "end":
                self.ended.set()
            else:
                raise SampleFailure("protocol", f"unknown message {said['type']!r}")

    async def finish(self) -> dict[str, Any]:
        self.sender.end()
        await self.exchange.unless_failed(self.ended.wait())
        return {"end_reason": "server_end", "truncated": False, **self.sender.facts()}

    async def close(self) -> None:
        await self.link.close()
        await self.exchange.close()


MODEL = Parrot
