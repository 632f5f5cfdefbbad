"""The websocket ``/v1/tts/stream`` and the health page (docs/tts_protocol.md).

The socket lives in the asyncio thread; the talker lives in one thread of its own, to which
utterances of all sessions queue in the order in which their first text came.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from websockets.asyncio.server import ServerConnection, serve
from websockets.datastructures import Headers
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from hfd.models.tts import protocol
from hfd.models.tts.speech import Chunk, Manner, Outcome, Policy, Speech, TextFeed, Voice

log = logging.getLogger("tts")
CONFIG_TIMEOUT_S = 10.0


class ProtocolError(Exception):
    """The client said something that the protocol does not know; `code` is the error's name."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True)
class Offer:
    """What the server speaks with, and what a session may choose from.

    Attributes:
        voice: the talker.
        info: model, weights, device and acceleration, as told in ``session.ready``.
        speakers, languages: the names a session may choose; the first is the default.
        emit_every: default number of frames per chunk.
        policy: waiting, padding and caps.
    """

    voice: Voice
    info: dict[str, Any]
    speakers: tuple[str, ...]
    languages: tuple[str, ...]
    emit_every: int = 1
    policy: Policy = dataclasses.field(default_factory=Policy)


class TtsServer:
    """All sessions of one talker."""

    def __init__(self, offer: Offer) -> None:
        self.offer = offer
        self.sessions = 0
        self.waiting = 0
        self.frames = 0
        self._talker = ThreadPoolExecutor(max_workers=1, thread_name_prefix="talker")

    async def run(self, host: str, port: int) -> None:
        """Serve until cancelled."""
        async with serve(
            self._connection,
            host,
            port,
            process_request=self._health,
            max_size=protocol.MAX_MESSAGE_BYTES,
            compression=None,
            ping_interval=20,
            ping_timeout=120,
        ) as server:
            address = server.sockets[0].getsockname()
            log.info("ready on ws://%s:%d%s", address[0], address[1], protocol.PATH)
            await server.serve_forever()

    def speak(self, utterance: Utterance) -> asyncio.Future[Outcome]:
        """Queue an utterance behind all that came before it."""
        self.waiting += 1
        return asyncio.get_running_loop().run_in_executor(self._talker, self._speak, utterance)

    def _speak(self, utterance: Utterance) -> Outcome:
        self.waiting -= 1
        return utterance.speak(self.offer)

    def _health(self, connection: ServerConnection, request: Request) -> Response | None:
        """Answer plain HTTP; None lets a websocket on the right path through."""
        path = request.path.partition("?")[0]
        if path == protocol.PATH:
            return None
        if path != protocol.HEALTH_PATH:
            return connection.respond(HTTPStatus.NOT_FOUND, "Not found\n")
        state = {
            "status": "ok",
            **self.offer.info,
            "sessions": self.sessions,
            "utterances_waiting": self.waiting,
            "frames": self.frames,
        }
        body = json.dumps(state).encode()
        headers = Headers({"Content-Type": "application/json", "Content-Length": str(len(body))})
        return Response(HTTPStatus.OK, "OK", headers, body)

    async def _connection(self, socket: ServerConnection) -> None:
        self.sessions += 1
        session = Session(self, socket)
        try:
            await session.run()
        except ConnectionClosed:
            log.info("client went away")
        except ProtocolError as error:
            await session.fail(error.code, str(error))
        except Exception as error:
            log.exception("the talker failed")
            await session.fail("voice_failed", f"{type(error).__name__}: {error}")
            # A broken device does not heal: leave, so that whoever started us starts us again.
            logging.shutdown()
            os._exit(1)
        finally:
            session.cancel()
            self.sessions -= 1


class Utterance:
    """One stretch of speech: its feed, and where its chunks go."""

    def __init__(self, number: int, manner: Manner, emit_every: int, outbox: Outbox) -> None:
        self.number = number
        self.feed = TextFeed()
        self.outcome: asyncio.Future[Outcome] | None = None
        self._manner = manner
        self._emit_every = emit_every
        self._outbox = outbox

    def speak(self, offer: Offer) -> Outcome:
        """Runs in the talker's thread."""
        self._outbox.put({"type": protocol.START, "utterance": self.number})
        samples = chunks = 0

        def on_chunk(chunk: Chunk) -> None:
            nonlocal samples, chunks
            header = {
                "type": protocol.CHUNK,
                "utterance": self.number,
                "seq": chunks,
                "frame_index": chunk.frame_index,
                "frames": chunk.frames,
                "samples": len(chunk.pcm),
                "text_seq_consumed": chunk.text_seq_consumed,
                "starved": chunk.starved,
                "compute_ms": round(chunk.compute_s * 1000, 3),
            }
            self._outbox.put(header, chunk.pcm.astype("<i2").tobytes())
            samples += len(chunk.pcm)
            chunks += 1

        speech = Speech(
            offer.voice, self.feed, self._manner, offer.policy, self._emit_every, on_chunk
        )
        outcome = speech.run()
        done = dataclasses.asdict(outcome)
        done["starved_s"] = round(outcome.starved_s, 3)
        self._outbox.put(
            {"type": protocol.AUDIO_DONE, "utterance": self.number, "samples": samples, **done}
        )
        return outcome


class Outbox:
    """Messages from the talker's thread to one socket, in order; a chunk's parts stay together."""

    def __init__(self, socket: ServerConnection) -> None:
        self._socket = socket
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[tuple[dict[str, Any], bytes | None] | None] = asyncio.Queue()

    def put(self, message: dict[str, Any], pcm: bytes | None = None) -> None:
        """Hand over a message; from any thread."""
        self._loop.call_soon_threadsafe(self._queue.put_nowait, (message, pcm))

    def close(self) -> None:
        """Let `drain` return after all that was put before."""
        self._loop.call_soon_threadsafe(self._queue.put_nowait, None)

    async def drain(self) -> None:
        """Send everything, until `close`."""
        while (item := await self._queue.get()) is not None:
            message, pcm = item
            await self._socket.send(json.dumps(message, ensure_ascii=False))
            if pcm is not None:
                await self._socket.send(pcm)


class Session:
    """One client: reads its text, opens utterances, ends when all have been spoken."""

    def __init__(self, server: TtsServer, socket: ServerConnection) -> None:
        self._server = server
        self._socket = socket
        self._outbox = Outbox(socket)
        self._utterances: list[Utterance] = []
        self._current: Utterance | None = None
        self._last_seq = -1

    async def run(self) -> None:
        """From ``session.config`` to ``session.done``."""
        self._manner, self._emit_every = await self._configure()
        drain = asyncio.ensure_future(self._outbox.drain())
        try:
            await self._read()
            for utterance in self._utterances:
                outcome = await utterance.outcome
                self._server.frames += outcome.frames
            self._outbox.put({"type": protocol.SESSION_DONE, "utterances": len(self._utterances)})
            self._outbox.close()
            await drain
        finally:
            drain.cancel()

    def cancel(self) -> None:
        """Stop speaking; the talker goes on to the next session at its next frame."""
        for utterance in self._utterances:
            utterance.feed.cancel()

    async def fail(self, code: str, message: str) -> None:
        """Tell the client what went wrong and close."""
        try:
            await self._socket.send(
                json.dumps({"type": protocol.ERROR, "code": code, "message": message})
            )
            await self._socket.close(1011 if code == "voice_failed" else 1008, code)
        except ConnectionClosed:
            return

    async def _configure(self) -> tuple[Manner, int]:
        offer = self._server.offer
        try:
            async with asyncio.timeout(CONFIG_TIMEOUT_S):
                config = _message(await self._socket.recv())
        except TimeoutError as error:
            raise ProtocolError("config_timeout", "no session.config came") from error
        if config["type"] != protocol.CONFIG:
            raise ProtocolError("config_first", "the first message must be session.config")
        manner = Manner(
            _choice(config, "speaker", offer.speakers),
            _choice(config, "language", offer.languages),
            _integer(config, "seed", 0, 0),
        )
        emit_every = _integer(config, "emit_every_frames", offer.emit_every, 1)
        if emit_every > protocol.MAX_EMIT_FRAMES:
            raise ProtocolError("bad_emit_every_frames", f"at most {protocol.MAX_EMIT_FRAMES}")
        ready = {
            "type": protocol.READY,
            "protocol": protocol.PROTOCOL,
            "sample_rate": protocol.SAMPLE_RATE,
            "frame_samples": protocol.FRAME_SAMPLES,
            "format": "pcm_s16le",
            "speaker": manner.speaker,
            "language": manner.language,
            "seed": manner.seed,
            "emit_every_frames": emit_every,
            **offer.info,
        }
        await self._socket.send(json.dumps(ready, ensure_ascii=False))
        return manner, emit_every

    async def _read(self) -> None:
        """Take text until ``input.done``; a failed talker ends the wait for it."""
        while True:
            message = _message(await self._receive())
            match message["type"]:
                case protocol.TEXT:
                    self._text(message)
                case protocol.FLUSH:
                    self._flush()
                case protocol.CANCEL:
                    self.cancel()
                    self._current = None
                case protocol.DONE:
                    self._flush()
                    return
                case other:
                    raise ProtocolError("unknown_type", f"unknown message type {other!r}")

    async def _receive(self) -> str | bytes:
        """The next message; raises what the talker raised if that comes first."""
        receive = asyncio.ensure_future(self._socket.recv())
        running = [u.outcome for u in self._utterances if not u.outcome.done()]
        try:
            while not receive.done():
                done, _ = await asyncio.wait(
                    [receive, *running], return_when=asyncio.FIRST_COMPLETED
                )
                for outcome in done - {receive}:
                    outcome.result()
                running = [outcome for outcome in running if not outcome.done()]
            return receive.result()
        finally:
            receive.cancel()

    def _text(self, message: dict[str, Any]) -> None:
        seq = _integer(message, "seq", None, self._last_seq + 1)
        text, tokens = message.get("text"), message.get("token_ids")
        if tokens is None and isinstance(text, str):
            tokens = self._server.offer.voice.tokens(text)
        vocabulary = range(self._server.offer.voice.text_vocabulary)
        if not isinstance(tokens, list) or not all(token in vocabulary for token in tokens):
            raise ProtocolError("bad_text", "input.text needs text (a string) or token_ids")
        self._last_seq = seq
        if not tokens:
            return
        if self._current is not None and self._current.outcome.done():
            raise ProtocolError(
                "utterance_abandoned", f"text {seq} came after its utterance was given up"
            )
        if self._current is None:
            self._current = Utterance(
                len(self._utterances), self._manner, self._emit_every, self._outbox
            )
            self._current.outcome = self._server.speak(self._current)
            self._utterances.append(self._current)
        self._current.feed.put(seq, tokens)

    def _flush(self) -> None:
        if self._current is not None:
            self._current.feed.finish()
            self._current = None


def _message(raw: str | bytes) -> dict[str, Any]:
    try:
        message = json.loads(raw) if isinstance(raw, str) else None
    except json.JSONDecodeError:
        message = None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ProtocolError("bad_message", "every message is a JSON object with a type")
    return message


def _choice(config: dict[str, Any], key: str, known: tuple[str, ...]) -> str:
    value = config.get(key) or known[0]
    if str(value).lower() not in known:
        raise ProtocolError(f"unknown_{key}", f"{key} {value!r} is not one of {sorted(known)}")
    return str(value).lower()


def _integer(message: dict[str, Any], key: str, default: int | None, least: int) -> int:
    value = message.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ProtocolError(f"bad_{key}", f"{key} must be an integer of at least {least}")
    return value


def serve_forever(offer: Offer, host: str, port: int) -> None:
    """Run the server in this process until it is interrupted."""
    asyncio.run(TtsServer(offer).run(host, port))
