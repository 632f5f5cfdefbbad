"""Reference services: one websocket server that speaks each dialect as its documents say.

    python service.py PORT [CERTIFICATE KEY]

The path chooses the dialect, ``?mode=`` how it misbehaves. It knows nothing of the client's code,
checks what it is sent as the real services do, and is itself checked by OpenAI's and Google's own
clients (test_sdk_clients.py). Its time is the sound it was sent, unless a mode says otherwise.
"""

import asyncio
import base64
import json
import ssl
import sys
import uuid
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

import numpy as np
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

KEY = "sk-right"
MISBEHAVIOURS = (
    "close_1000",
    "close_1008",
    "close_1011",
    "drop",
    "garbage",
    "binary",
    "huge",
    "error",
)
RATE = 24_000


def tone(seconds, rate=RATE):
    phase = np.arange(round(seconds * rate)) * (2 * np.pi * 440 / rate)
    return np.rint(9000 * np.sin(phase)).astype("<i2")


def b64(data):
    return base64.b64encode(data).decode()


class Refused(Exception):
    pass


class Service:
    """One session: what is heard moves time on, and time starts what the mode plans."""

    rate_in = 24_000
    text = ("Hello", " 你好", " there")

    def __init__(self, socket, mode):
        self.socket, self.mode = socket, mode
        self.heard = 0
        self.open = False
        self.begun = self.cut = False
        self.believed_ms = None
        self.sent_ms = 0
        self.tasks = []

    async def say(self, **message):
        await self.socket.send(json.dumps(message, ensure_ascii=False))

    async def feed(self, pcm16):
        if not self.open:
            raise Refused("sound before the session was open")
        if len(pcm16) % 2:
            raise Refused("half a sample")
        self.heard += len(pcm16) // 2
        await self.tick(self.heard / self.rate_in)

    async def tick(self, seconds):
        if seconds >= (0.3 if self.mode == "quick" else 0.5) and not self.begun:
            self.begun = True
            await self.misbehave_or_answer()
        if self.mode in ("barge_in", "silent_cancel") and seconds >= 1.2 and not self.cut:
            self.cut = True
            await self.user_begins()
            await self.sound("r1", tone(0.2))  # on its way when the user began
            if self.mode == "barge_in":
                await self.end("r1", "cancelled")

    async def misbehave_or_answer(self):
        mode = self.mode
        if mode == "silent":
            return
        if mode in ("close_1000", "close_1008", "close_1011"):
            await self.socket.close(int(mode[-4:]), "as the mode says")
            return
        if mode == "drop":
            self.socket.transport.abort()
            return
        if mode == "garbage":
            await self.socket.send("}{")
            return
        if mode == "binary":
            await self.socket.send(b"\xff\xfe\x00")
            return
        if mode == "huge":
            self.socket.transport.write(b"\x81\x7f" + (65 << 20).to_bytes(8))  # as it announces
            return
        if mode == "error":
            await self.error("server_error", f"it broke; your key was {KEY}")
            return
        if mode == "benign_error":
            await self.error("response_cancel_not_active", "nothing to cancel")
        if mode == "echo_key":
            await self.say(type=f"debug {KEY}")
        if mode == "unknown":
            await self.say(type="something.new", field={"a": [1]})
        await self.answer(
            "r1",
            {"burst_10": 10.0, "barge_in": 6.0, "silent_cancel": 6.0, "quick": 0.3}.get(mode, 1.0),
        )

    async def answer(self, name, seconds):
        await self.begin(name)
        pcm = tone(seconds).tobytes()
        step = 4801 if self.mode == "odd_bytes" else 4800
        for n, start in enumerate(range(0, len(pcm), step)):
            if n < len(self.text):
                await self.words(name, self.text[n])
            await self.sound(name, pcm[start : start + step])
            if self.mode == "stalled" and n == 2:
                return  # and nothing more, for ever
        if self.mode == "never_done":
            self.tasks.append(asyncio.create_task(self.chatter(name)))
        elif self.mode not in ("barge_in", "silent_cancel"):
            await self.end(name, "completed")

    async def chatter(self, name):
        while True:
            await asyncio.sleep(0.1)
            await self.words(name, "…")

    async def close(self):
        for task in self.tasks:
            task.cancel()


class OpenAI(Service):
    """GA Realtime."""

    async def start(self):
        await self.say(
            type="session.created",
            event_id="e0",
            session={"type": "realtime", "object": "realtime.session", "id": "sess_1"},
        )

    def check_session(self, session):
        if session.get("type") != "realtime":
            raise Refused("session.type is missing")
        if session["audio"]["input"]["format"] != {"type": "audio/pcm", "rate": 24000}:
            raise Refused("integer_below_min_value: audio.input.format.rate")

    async def message(self, message):
        match message["type"]:
            case "session.update":
                if self.mode == "refused":
                    await self.error("invalid_api_key", f"Incorrect API key provided: {KEY}")
                    return False
                session = dict(message["session"])
                self.check_session(session)
                if self.mode == "other_session":
                    session["truncation"] = "auto"
                self.open = True
                session |= {
                    "id": "sess_1",
                    "object": "realtime.session",
                    "model": "gpt-test-2026-01-01",
                }
                await self.say(type="session.updated", event_id="e1", session=session)
            case "input_audio_buffer.append":
                await self.feed(base64.b64decode(message["audio"], validate=True))
            case "conversation.item.create":
                part = message["item"]["content"][0]
                head, data = part["image_url"].split(",", 1)
                if head != "data:image/jpeg;base64" or base64.b64decode(data)[:2] != b"\xff\xd8":
                    raise Refused("no JPEG")
            case "conversation.item.truncate":
                if message["item_id"] != "item_r1" or message["audio_end_ms"] > self.sent_ms:
                    raise Refused(f"truncate beyond the item's {self.sent_ms} ms")
                self.believed_ms = message["audio_end_ms"]
                await self.say(
                    type="conversation.item.truncated",
                    event_id="e2",
                    item_id=message["item_id"],
                    content_index=0,
                    audio_end_ms=message["audio_end_ms"],
                )
            case other:
                raise Refused(f"unknown event {other}")
        return True

    def of(self, name):
        return {"event_id": uuid.uuid4().hex, "response_id": name, "item_id": f"item_{name}",
                "output_index": 0, "content_index": 0}  # fmt: skip

    sound_name = "response.output_audio.delta"
    words_name = "response.output_audio_transcript.delta"

    async def begin(self, name):
        await self.say(
            type="response.created",
            event_id="e3",
            response={
                "id": name,
                "object": "realtime.response",
                "status": "in_progress",
                "output": [],
            },
        )

    async def sound(self, name, pcm):
        data = pcm if isinstance(pcm, bytes) else pcm.tobytes()
        self.sent_ms += len(data) // 2 * 1000 // RATE
        await self.say(type=self.sound_name, delta=b64(data), **self.of(name))

    async def words(self, name, text):
        await self.say(type=self.words_name, delta=text, **self.of(name))

    async def end(self, name, status):
        details = {"type": status, "reason": "turn_detected"} if status == "cancelled" else None
        usage = {"total_tokens": 30, "input_tokens": 10, "output_tokens": 20}
        response = {"id": name, "object": "realtime.response", "status": status, "output": [],
                    "status_details": details, "usage": usage}  # fmt: skip
        await self.say(type="response.done", event_id="e4", response=response)

    async def user_begins(self):
        await self.say(
            type="input_audio_buffer.speech_started",
            event_id="e5",
            audio_start_ms=1000,
            item_id="item_user",
        )

    async def error(self, code, text):
        error = {"type": "invalid_request_error", "code": code, "message": text}
        await self.say(type="error", event_id="e6", error=error)


class Qwen(OpenAI):
    """Beta names, 16 kHz in, images after sound, `session.finish`."""

    rate_in = 16_000
    sound_name = "response.audio.delta"
    words_name = "response.audio_transcript.delta"

    def check_session(self, session):
        if session["input_audio_format"] != "pcm" or "audio" in session["modalities"][:1]:
            raise Refused("bad session")

    async def message(self, message):
        match message["type"]:
            case "input_image_buffer.append":
                if not self.heard:
                    raise Refused("Error append image before append audio")
                if len(message["image"]) > 256 * 1024:
                    raise Refused("image too large")
            case "session.finish":
                await self.say(type="session.finished", event_id="e9")
            case "conversation.item.truncate":
                raise Refused("unknown event")
            case _:
                return await super().message(message)
        return True


class Live(Service):
    """OpenAI Live: 100 ms out for 100 ms in, silence included; nothing without input."""

    async def start(self):
        self.held = 0
        self.stall = []

    async def message(self, message):
        match message["type"]:
            case "session.start":
                session = message["session"]
                if "model" not in session or session["audio"]["format"]["rate"] not in (
                    16000,
                    24000,
                ):
                    raise Refused("bad session")
                self.rate_in = session["audio"]["format"]["rate"]
                self.open = True
                started = {**session, "id": "live_1", "expires_at": 2000000000, "status": "active"}
                await self.say(type="session.started", event_id="e1", session=started)
            case "session.input_audio.append":
                await self.feed(base64.b64decode(message["audio"], validate=True))
            case "session.close":
                await self.say(
                    type="session.closed", event_id="e2", reason="close_requested",
                    session={"id": "live_1", "expires_at": 2000000000, "status": "active",
                             "model": "gpt-live-1"},
                    usage={"seconds": self.heard / self.rate_in},
                )  # fmt: skip
                return False
            case other:
                raise Refused(f"unknown event {other}")
        return True

    async def tick(self, seconds):
        while self.held < int(seconds * 10 + 1e-6):
            self.held += 1
            at = self.held / 10
            pcm = tone(0.1) if 0.6 < at <= 1.6 else np.zeros(2400, "<i2")
            if self.mode == "long" and at > 0.6:
                pcm = tone(0.1)
            if self.mode == "quick":
                pcm = tone(0.1) if 0.3 < at <= 0.6 else np.zeros(2400, "<i2")
            if abs(at - (0.4 if self.mode == "quick" else 0.7)) < 1e-6:
                await self.say(type="session.output_transcript.delta", event_id="e", delta="Hello",
                               start_ms=600, end_ms=700)  # fmt: skip
            self.stall.append(pcm)
            if self.mode == "stall_300" and 0.8 <= at < 1.1:
                continue  # it lags for 300 ms, and then catches up
            while self.stall:
                await self.say(
                    type="session.output_audio.delta", delta=b64(self.stall.pop(0).tobytes())
                )
        if self.mode in MISBEHAVIOURS and seconds > 0.5 and not self.begun:
            self.begun = True
            await self.misbehave_or_answer()

    async def error(self, code, text):
        error = {"type": "x", "code": code, "message": text}
        await self.say(type="error", event_id="e", error=error)


class Gemini(Service):
    """Gemini Live: JSON in binary frames."""

    rate_in = 16_000

    async def start(self):
        pass

    async def say(self, **message):
        await self.socket.send(json.dumps(message).encode())

    async def message(self, message):
        if "setup" in message:
            if self.open or not message["setup"]["model"].startswith("models/"):
                raise Refused("setup twice, or without a model")
            self.open = True
            await self.say(setupComplete={})
            return True
        told = message.get("realtimeInput") or message.get("realtime_input")
        if audio := told.get("audio"):
            kind = audio.get("mimeType") or audio.get("mime_type")
            if kind != "audio/pcm;rate=16000":
                raise Refused(kind)
            await self.feed(base64.urlsafe_b64decode(audio["data"].translate({43: "-", 47: "_"})))
        elif "video" in told and base64.b64decode(told["video"]["data"])[:2] != b"\xff\xd8":
            raise Refused("no JPEG")
        return True

    async def begin(self, name):
        pass

    async def sound(self, name, pcm):
        data = pcm if isinstance(pcm, bytes) else pcm.tobytes()
        part = {"inlineData": {"mimeType": "audio/pcm;rate=24000", "data": b64(data)}}
        await self.say(serverContent={"modelTurn": {"parts": [part]}})

    async def words(self, name, text):
        await self.say(serverContent={"outputTranscription": {"text": text}})

    async def end(self, name, status):
        if status == "completed":
            await self.say(serverContent={"generationComplete": True})
            await self.say(serverContent={"turnComplete": True},
                           usageMetadata={"totalTokenCount": 30})  # fmt: skip

    async def user_begins(self):
        await self.say(serverContent={"interrupted": True})

    async def tick(self, seconds):
        if self.mode == "go_away" and seconds >= 0.3 and not self.cut:
            self.cut = True
            await self.say(goAway={"timeLeft": "50s"})
        if self.mode == "barge_in" and seconds >= 1.2 and not self.cut:
            self.cut = True
            await self.user_begins()
            await self.say(serverContent={"turnComplete": True})
        elif seconds >= (0.3 if self.mode == "quick" else 0.5) and not self.begun:
            self.begun = True
            await self.misbehave_or_answer()

    async def error(self, code, text):
        await self.socket.close(1011, "Internal error encountered.")


class VllmOmni(OpenAI):
    """vLLM-Omni with the input clock of its open pull request 8485, as that describes itself.

    Every append is acknowledged once all that came of it was sent; each takes a while to compute.
    """

    rate_in = 16_000

    async def start(self):
        self.inputs = 0

    async def message(self, message):
        match message["type"]:
            case "session.update":
                body = message["session"]["extra_body"]
                self.clocked = body.get("clock") == "input" and self.mode != "no_clock"
                self.open = True
                session = {"id": "duplex-1", "audio": message["session"]["audio"]}
                await self.say(type="session.created", session=session, resume_token="secret")
                await self.say(type="session.updated", session=session)
            case "input_audio_buffer.append":
                await asyncio.sleep(0.05)
                self.inputs += 1
                await self.feed(base64.b64decode(message["audio"], validate=True))
                if self.clocked:
                    await self.say(
                        type="input_audio_buffer.processed",
                        audio_end_ms=self.heard // 16,
                        unit_end_ms=self.inputs * 1000,
                        input_index=self.inputs,
                        units=[{"end_ms": self.inputs * 1000, "decision": self.decision}],
                    )
            case "session.close":
                await self.say(type="session.closed", reason="client_close")
                return False
            case "playback.ack":
                await self.say(type="playback.acknowledged", item_id=message["item_id"])
            case other:
                raise Refused(f"unknown event {other}")
        return True

    async def tick(self, seconds):
        unit = round(seconds)
        speaks = 2 <= unit <= 3
        self.decision = "speak" if speaks else "listen"
        if not speaks:
            await self.say(type="response.listen", response={"status": "listening"})
            return
        if unit == 2:
            await self.begin("r1")
        await self.say(type="response.speak", **self.of("r1"))
        await self.sound("r1", tone(1.0))
        await self.words("r1", f"unit {unit} ")
        if unit == 3:
            await self.end("r1", "completed")


def choose(path):
    if "autostart=0" in path:
        return VllmOmni
    if path.startswith("/v1/live/sessions"):
        return Live
    if path.startswith("/api-ws/v1/realtime"):
        return Qwen
    if "BidiGenerateContent" in path:
        return Gemini
    return OpenAI


async def handle(socket):
    url = urlsplit(socket.request.path)
    mode = parse_qs(url.query).get("mode", ["honest"])[0]
    session = choose(socket.request.path)(socket, mode)
    try:
        if mode == "mute":
            await asyncio.sleep(60)
        await session.start()
        async for raw in socket:
            if not await session.message(json.loads(raw)):
                return
    except ConnectionClosed:
        pass
    except Refused as refusal:
        text = f"refused: {refusal}"
        await socket.send(
            json.dumps({"type": "error", "error": {"code": "bad_event", "message": text}})
        )
        await socket.close(1008, text[:100])
    finally:
        await session.close()


def gate(connection, request):
    url = urlsplit(request.path)
    mode = parse_qs(url.query).get("mode", [""])[0]
    if url.path == "/health":
        return connection.respond(HTTPStatus.OK, "ok\n")
    if mode == "http_401":
        given = request.headers.get("Authorization")
        return connection.respond(HTTPStatus.UNAUTHORIZED, f"wrong key: {given}\n")
    if mode == "http_429":
        return connection.respond(HTTPStatus.TOO_MANY_REQUESTS, "slow down\n")
    return None


async def main(port, *certificate):
    tls = None
    if certificate:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*certificate)
    async with serve(
        handle, "127.0.0.1", port, process_request=gate, max_size=None, ssl=tls
    ) as server:
        print("ready", flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), *sys.argv[2:]))
