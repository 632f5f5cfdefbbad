"""Reference Aero server: one 80 ms unit in, one token or silence out, then the next unit.

    python aero_server.py PORT

`?mode=` of the URL chooses how it misbehaves, `&slots=a-b,c-d` the slots in which it speaks.
It knows nothing of the client's code: it checks what it is sent and refuses what the engine would.
"""

import asyncio
import base64
import json
import sys
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from websockets.asyncio.server import serve

UNIT_BYTES = 1280 * 2
WORDS = ["你", "好", ",", " this", " is", " 一", "句", "话", " said", " token", " by", " token"]
COMPUTE_S = 0.02


class Refused(Exception):
    pass


def token(mode, n):
    word = WORDS[n % len(WORDS)]
    if mode == "half":  # the second token of a two-token character
        return {"delta": "\ufffd"} if n % 4 in (1, 2) else {"delta": word}
    if mode == "ids":  # 猫 is e7 8c ab: tokens 0 and 1 of the test's vocabulary
        return {"delta": "\ufffd", "token_ids": [n % 2]}
    if mode == "spelling":
        return {"text": word}
    return {"delta": word}


async def talk(socket, mode, spoken):
    """The engine's loop: it is driven by units and answers each before it takes the next."""
    units = asyncio.Queue()
    kinds = {"spelling": "text.delta", "foreign": "speech.piece", "foreign_final": "speech.piece"}
    kind = kinds.get(mode, "response.text.delta")
    said = slot = 0
    held = []

    async def say():
        nonlocal said
        name = "event" if mode == "spelling" else "type"
        message = {name: kind, **token(mode, said), "slot": slot}
        said += 1
        if mode in ("after_done", "bursts"):
            held.append(message)
        else:
            await socket.send(json.dumps(message))

    async def release():
        while held:
            await socket.send(json.dumps(held.pop(0)))

    async def engine():
        nonlocal slot
        while (await units.get()) is not None:
            await asyncio.sleep(COMPUTE_S)
            if mode == "stall" and slot == 12:
                await asyncio.sleep(3)
            if mode == "drop" and slot == 7:
                socket.transport.abort()
                return
            if mode == "error" and slot == 5:
                await socket.send(json.dumps({"type": "error", "error": {"message": "no slot"}}))
            if mode == "big" and slot == 5:
                await socket.send(json.dumps({"type": "debug.dump", "data": "x" * (2 << 20)}))
            if slot in spoken:
                await say()
            elif mode == "markers":
                markers = ["<|rt_pad|>", "", "<|rt_speak|>"]
                await socket.send(json.dumps({"type": kind, "delta": markers[slot % 3]}))
            if mode == "bursts" and slot % 12 == 11:
                await release()
            slot += 1

    running = asyncio.create_task(engine())
    if mode == "eager":
        await socket.send(json.dumps({"type": kind, "delta": "Hello"}))
    pictures = []
    async for raw in socket:
        message = json.loads(raw)
        configured = message["type"] != "session.config"
        if mode == "ids_needed" and configured and message.get("session") != "s-1":
            raise Refused("a message without the session's id")
        match message["type"]:
            case "session.config":
                created = {"type": "session.created", "session": {"id": "s-1"}}
                await socket.send(json.dumps(created))
            case "video.frame":
                if base64.b64decode(message["data"])[:2] != b"\xff\xd8":
                    raise Refused("a picture that is no JPEG")
                pictures.append(message["timestamp"])
            case "input.audio.append":
                if len(base64.b64decode(message["audio"])) != UNIT_BYTES:
                    raise Refused("a unit that is not 80 ms")
                units.put_nowait(message)
            case "input.done":
                break
            case other:
                raise Refused(other)
    units.put_nowait(None)
    await running
    if pictures != [float(k) for k in range(len(pictures))]:
        raise Refused(f"pictures at {pictures}")
    await release()
    while mode == "chatter":  # statistics for ever, with a silence event now and then
        await socket.send(json.dumps({"type": "response.silence", "load": 0.5}))
        await asyncio.sleep(0.2)
    if mode == "quiet_end":
        await asyncio.sleep(600)
    if mode not in ("just_close", "foreign"):
        for _ in range(3 if mode == "markers" else 1):
            await socket.send(json.dumps({"type": "response.done"}))


async def handle(socket):
    query = parse_qs(urlsplit(socket.request.path).query)
    spoken = set()
    for part in query.get("slots", ["2-13"])[0].split(","):
        first, last = map(int, part.split("-"))
        spoken |= set(range(first, last + 1))
    try:
        await talk(socket, query.get("mode", ["honest"])[0], spoken)
    except Refused as refusal:
        await socket.send(json.dumps({"type": "error", "message": f"refused: {refusal}"}))


def health(connection, request):
    return connection.respond(HTTPStatus.OK, "ok\n") if request.path == "/health" else None


async def main(port):
    async with serve(handle, "127.0.0.1", port, process_request=health, max_size=None) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
