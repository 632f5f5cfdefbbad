"""Realtime services over one websocket: vLLM-Omni, OpenAI, Qwen, Gemini, Moshi and their kin.

One client with honest times; what differs between services is a dialect (dialects/), a pure file.
See docs/realtime.md.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from hfd.duplex.frames import FrameRule
from hfd.duplex.model import Capabilities, DuplexModel, Emit, Identity, ModelBroken, SampleInfo
from hfd.duplex.units import Unit
from hfd.errors import HfdError
from hfd.media_time import SAMPLE_RATE
from hfd.models.realtime.budget import Budget
from hfd.models.realtime.dialects import make_dialect
from hfd.models.realtime.settings import read_settings
from hfd.models.realtime.sound import RESAMPLER
from hfd.models.realtime.talk import Talk
from hfd.models.realtime.video import QUALITY
from hfd.models.servers import ChildServer
from hfd.models.sockets.exchange import Exchange
from hfd.models.sockets.failures import SampleFailure
from hfd.models.sockets.loop import LoopThread
from hfd.models.sockets.recording import Recording, Secrets

RETRY_S = (1.0, 4.0, 10.0)
"""Pauses between attempts to connect; after the first unit nothing is ever tried again."""
WARMUP_S = 2
TURN_BASED = "turn_based_duplex"
"""What vLLM-Omni calls a model that is not duplex itself."""


class RealtimeModel(DuplexModel):
    """One service behind the one model interface; see the module's docstring."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = read_settings(settings)
        self._traits = make_dialect(self._settings).traits
        self._budget = Budget(Path(self._settings.budget)) if self._settings.budget else None
        spec = self._settings.server_spec()
        self._server = ChildServer(spec) if spec else None
        self._sockets: LoopThread | None = None
        self._talk: Talk | None = None
        self._began = 0.0

    @property
    def capabilities(self) -> Capabilities:
        rate = self._settings.frame_rate()
        return Capabilities(
            unit_samples=self._traits.unit_samples,
            output_rate=self._traits.output_rate,
            clock="virtual" if self._settings.input_clock == "require" else "arrival",
            voice_origin="none" if self._settings.modality == "text" else "native_talker",
            frame_rule=FrameRule.per_second(rate, jpeg_quality=QUALITY) if rate else None,
            max_media_s=self._traits.max_media_s,
            gpus=len(self._server.spec.gpus) if self._server else 0,
            codec_hop_samples=self._traits.codec_hop_samples,
            input_rate=self._traits.input_rate,
            turn_taking=self._traits.turn_taking,
            secrets=self._key_names(),
        )

    def load(self) -> Identity:
        self._key()
        if self._budget is not None:
            self._budget.check()
        if self._server is not None:
            self._server.launch()
            self._server.wait_ready()
        self._sockets = LoopThread("realtime-sockets")
        session = self._try_out()
        traits, settings = self._traits, self._settings
        level = _implementation(session)
        resampled = None if traits.input_rate == SAMPLE_RATE else RESAMPLER
        return Identity(
            settings.model or settings.dialect,
            settings.weights,
            detail={
                "black_box": settings.weights is None,
                "dialect": settings.dialect,
                "server_model": session.get("model"),
                "host": urlsplit(settings.url).hostname,
                "region": settings.region,
                "date": time.strftime("%Y-%m-%d", time.gmtime()),
                "turn_taking": traits.turn_taking,
                "full_duplex": "vad_gated" if level == TURN_BASED else traits.full_duplex,
                "implementation_level": level,
                "output_stream": traits.stream,
                "server_clock": "input" if traits.input_clock else settings.input_clock,
                "context_policy": traits.context,
                "audio_only": settings.frame_rate() == 0,
                "input_resampled": resampled,
                "heard_reported": traits.hears_playback,
            },
        )

    def open(self, sample: SampleInfo, emit: Emit) -> None:
        if self._budget is not None:
            try:
                self._budget.check()
            except HfdError as error:
                raise ModelBroken(str(error)) from error
        self._restart_the_dead()
        folder = sample.scratch if self._settings.record else None
        self._connect(sample.media_s, emit, folder, sample.seed)

    def push(self, unit: Unit) -> None:
        talk = self._talking()
        if talk.failure is not None:
            raise self._explained(talk.failure)
        if self._settings.input_clock == "require":
            self._run(talk.push_and_wait(unit))
        else:
            talk.push(unit)

    def finish(self) -> Mapping[str, Any]:
        facts: dict[str, Any] = self._run(self._talking().finish())
        facts["server_restarts"] = self._server.restarts if self._server else 0
        return facts

    def close(self) -> None:
        if self._talk is None:
            return
        talk, self._talk = self._talk, None
        assert self._sockets is not None
        self._sockets.run(talk.close())
        if self._budget is not None:
            self._budget.spend((time.monotonic() - self._began) / 60, talk.used())

    def unload(self) -> None:
        if self._sockets is not None:
            self._sockets.stop()
            self._sockets = None
        if self._server is not None:
            self._server.stop()

    # -- connection --------------------------------------------------------------------------

    def _connect(self, media_s: float, emit: Emit, folder: Path | None, seed: int) -> None:
        """Open a session, in several attempts as long as nothing was sent.

        Raises:
            ModelBroken: the server cannot be reached, refuses, or has no room.
        """
        for attempt in range(self._settings.attempts):
            try:
                return self._connect_once(media_s, emit, folder, seed)
            except SampleFailure as failure:
                self.close()
                last = attempt == self._settings.attempts - 1
                if failure.kind not in ("connect_failed", "busy") or last:
                    if failure.server_at_fault:
                        raise ModelBroken(str(self._explained(failure))) from failure
                    raise
            time.sleep(RETRY_S[min(attempt, len(RETRY_S) - 1)])
            self._restart_the_dead()

    def _connect_once(self, media_s: float, emit: Emit, folder: Path | None, seed: int) -> None:
        key = self._key()
        secrets = Secrets([key])
        self._began = time.monotonic()
        url = self._settings.url
        if self._server is not None:
            url = url.replace("{port}", str(self._server.port))

        async def start() -> None:
            exchange = Exchange(Recording(folder, secrets), secrets)
            self._talk = Talk(make_dialect(self._settings, seed), exchange, media_s, emit)
            await self._talk.open(url, key)

        assert self._sockets is not None
        self._sockets.run(start())

    def _try_out(self) -> Mapping[str, Any]:
        """A session before the first sample: what the server says of itself.

        With ``warmup`` it hears two seconds of silence and what it says to them is thrown away.
        """
        self._connect(WARMUP_S, lambda event: None, None, 0)
        talk = self._talking()
        try:
            if self._settings.warmup:
                size = self._traits.unit_samples
                count = WARMUP_S * SAMPLE_RATE // size
                for index in range(count):
                    zeros = np.zeros(size, np.float32)
                    last = index == count - 1
                    self.push(Unit(index, index * size, zeros, (), size, last))
                    time.sleep(size / SAMPLE_RATE)
                self.finish()
            return talk.session
        finally:
            self.close()

    def _restart_the_dead(self) -> None:
        """Start the child server again if it ended since the last sample.

        Raises:
            ModelBroken: it does not come up, or died too often.
        """
        try:
            if self._server is not None:
                self._server.ensure()
        except HfdError as error:
            raise ModelBroken(str(error)) from error

    def _talking(self) -> Talk:
        assert self._talk is not None, "no sample is open"
        return self._talk

    def _run(self, work: Any) -> Any:
        assert self._sockets is not None
        try:
            return self._sockets.run(work)
        except SampleFailure as failure:
            raise self._explained(failure) from failure

    def _explained(self, failure: BaseException) -> BaseException:
        """The failure, or the death of the child server that caused it."""
        if self._server is None or not isinstance(failure, SampleFailure):
            return failure
        if failure.kind not in ("socket_lost", "connect_failed"):
            return failure
        try:
            self._server.check()
        except HfdError as death:
            return SampleFailure("server_died", death.problem.partition(": ")[2])
        return failure

    # -- key ---------------------------------------------------------------------------------

    def _key_names(self) -> tuple[str, ...]:
        own = self._settings.api_key_env
        return (own,) if own else self._traits.key_env

    def _key(self) -> str:
        """The key from the environment, or an empty one where none is needed.

        Raises:
            HfdError: none of the variables is set.
        """
        names = self._key_names()
        for name in names:
            if key := os.environ.get(name, "").strip():
                return key
        if names:
            raise HfdError(
                f"no key: the environment variable {' or '.join(names)} is not set",
                field="settings.api_key_env",
                remedy="Set it where the job runs; a key is never written into a file",
            )
        return ""


def _implementation(session: Mapping[str, Any]) -> str | None:
    """vLLM-Omni: whether the model itself is duplex, as the server says."""
    capabilities = session.get("capabilities")
    level = capabilities.get("implementation_level") if isinstance(capabilities, Mapping) else None
    return str(level) if level else None


MODEL = RealtimeModel
