"""Aero-Realtime: text from a lock-step server, spoken at once by a streaming TTS server.

Every 80 ms unit is sent when it is due; every text delta that comes back goes to the TTS server in
the same moment, and its speech is recorded as it arrives. Both servers may be children of the
worker or already up. See docs/aero.md.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hfd.duplex.frames import FrameRule
from hfd.duplex.model import Capabilities, DuplexModel, Emit, Identity, ModelBroken, SampleInfo
from hfd.duplex.units import Unit
from hfd.errors import HfdError
from hfd.models.aero.conversation import Conversation
from hfd.models.aero.settings import read_settings
from hfd.models.aero.speaker import Speaker
from hfd.models.aero.vocab import TokenText
from hfd.models.aero.wire import Wire
from hfd.models.servers import ChildServer, start_all
from hfd.models.sockets.exchange import Exchange
from hfd.models.sockets.failures import SampleFailure
from hfd.models.sockets.loop import LoopThread
from hfd.models.sockets.recording import Recording
from hfd.models.tts.protocol import FRAME_SAMPLES, SAMPLE_RATE

ROOT = Path(__file__).parents[4]
UNIT_SAMPLES = 1280
JPEG_QUALITY = 95
"""Visually lossless; frames are sent in their own size."""
DEATH_NOTICE_S = 0.5
"""Time in which a dead server's guardian has noticed its end."""
TEAM_WAV = "assistant_stream.wav"
"""The name under which the team's scripts look for the wav; kept in ``side/``."""


class AeroModel(DuplexModel):
    """The pair of servers behind the one model interface; see the module's docstring."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = read_settings(settings)
        self._frame_rate = self._settings.frame_rate()
        self._servers = {
            name: ChildServer(spec) for name, spec in self._settings.server_specs().items()
        }
        self._wire = Wire(ROOT / self._settings.wire)
        self._token_text: TokenText | None = None
        self._conversation: Conversation | None = None
        self._loop: LoopThread | None = None

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            unit_samples=UNIT_SAMPLES,
            output_rate=SAMPLE_RATE,
            clock="arrival",
            voice_origin="streaming_tts",
            frame_rule=FrameRule.per_second(self._frame_rate, jpeg_quality=JPEG_QUALITY),
            max_media_s=self._settings.max_media_s,
            gpus=len({gpu for server in self._servers.values() for gpu in server.spec.gpus}),
            codec_hop_samples=FRAME_SAMPLES,
        )

    def load(self) -> Identity:
        start_all(self._servers.values())
        if self._settings.vocab:
            self._token_text = TokenText(Path(self._settings.vocab))
        self._loop = LoopThread("aero-sockets")
        return Identity(
            "aero-realtime-4b + qwen3-tts",
            self._settings.weights,
            detail={
                "wire": {"file": self._wire.name, "sha256": self._wire.sha256},
                "picture_fps": str(self._frame_rate),
                "tts": self._sockets.run(self._tts_identity()),
            },
        )

    def open(self, sample: SampleInfo, emit: Emit) -> None:
        self._restart_the_dead()
        if self._token_text is not None:
            self._token_text.reset()
        try:
            self._sockets.run(self._open(sample, emit))
        except SampleFailure as failure:
            # A server that died a moment ago may have looked alive; nothing was sent to it yet.
            time.sleep(DEATH_NOTICE_S)
            if not self._restart_the_dead():
                if failure.server_at_fault:
                    raise ModelBroken(str(failure)) from failure
                raise
            self.close()
            self._sockets.run(self._open(sample, emit))

    def push(self, unit: Unit) -> None:
        if self._open_one.failure is not None:
            raise self._explained(self._open_one.failure)
        self._open_one.push(unit)

    def finish(self) -> Mapping[str, Any]:
        try:
            facts = self._sockets.run(self._open_one.finish())
        except SampleFailure as failure:
            raise self._explained(failure) from failure
        (self._scratch / TEAM_WAV).symlink_to("../assistant_audio.wav")
        return {
            **facts,
            "server_restarts": {name: child.restarts for name, child in self._servers.items()},
        }

    def close(self) -> None:
        if self._conversation is not None:
            self._sockets.run(self._conversation.close())
            self._conversation = None

    def unload(self) -> None:
        for server in self._servers.values():
            server.stop()
        if self._loop is not None:
            self._loop.stop()
            self._loop = None

    @property
    def _sockets(self) -> LoopThread:
        """The thread of the sockets, between `load` and `unload`."""
        assert self._loop is not None
        return self._loop

    @property
    def _open_one(self) -> Conversation:
        """The sample that is open, between `open` and `close`."""
        assert self._conversation is not None
        return self._conversation

    def _restart_the_dead(self) -> bool:
        """Start servers again that ended since the last sample; tell whether any had.

        Raises:
            ModelBroken: a server does not come up, or died too often.
        """
        try:
            restarted = [server.ensure() for server in self._servers.values()]
        except HfdError as error:
            raise ModelBroken(str(error)) from error
        return any(restarted)

    def _url(self, server: str) -> str:
        url = self._settings.url if server == "aero" else self._settings.tts_url
        child = self._servers.get(server)
        return url.replace("{port}", str(child.port)) if child else url

    def _tts_config(self, seed: int) -> dict[str, Any]:
        manner = {"speaker": self._settings.speaker, "language": self._settings.language}
        return {"seed": seed, **{key: value for key, value in manner.items() if value}}

    async def _open(self, sample: SampleInfo, emit: Emit) -> None:
        self._scratch = sample.scratch
        recording = Recording(sample.scratch if self._settings.record else None)
        self._conversation = Conversation(
            self._wire,
            self._settings,
            JPEG_QUALITY,
            self._token_text,
            sample.media_s,
            emit,
            recording,
        )
        await self._conversation.open(
            self._url("aero"), self._url("tts"), self._tts_config(sample.seed)
        )

    async def _tts_identity(self) -> dict[str, Any]:
        """What the TTS server says of itself, from a session that says nothing."""
        exchange = Exchange(Recording(None))
        speaker = Speaker(lambda event: None, exchange)
        try:
            await speaker.open(self._url("tts"), self._tts_config(0), self._settings.connect_s)
            return {key: value for key, value in speaker.ready.items() if key != "type"}
        finally:
            await speaker.close()
            await exchange.close()

    def _explained(self, failure: BaseException) -> BaseException:
        """The failure, or the death of the child server that caused it."""
        if not isinstance(failure, SampleFailure) or failure.kind != "socket_lost":
            return failure
        for server in self._servers.values():
            try:
                server.check()
            except HfdError as death:
                return SampleFailure("server_died", death.problem.partition(": ")[2])
        return failure


MODEL = AeroModel
