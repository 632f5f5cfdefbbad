"""The real TTS server (socket, queue, speech policy) with a voice that hums instead of a network.

    python tone_server.py PORT [SLOTS [FRAMES_PER_TOKEN]]

`?mode=` of the URL chooses another, misbehaving server in its place.
"""

import asyncio
import json
import sys
import time
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

import numpy as np
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

from hfd.models.tts.protocol import FRAME_SAMPLES
from hfd.models.tts.server import Offer, TtsServer

FRAMES_PER_TOKEN = 2
FRAME_S = 0.01


class ToneVoice:
    """Each text token gives some frames of a tone; ends when all its tokens have been spoken.

    Text with "∞" is never ended, text with "☠" breaks the voice.
    """

    max_frames = 2048
    text_vocabulary = 0x110000

    def __init__(self, slots=1, frames_per_token=FRAMES_PER_TOKEN):
        self.slots, self.frames_per_token = slots, frames_per_token
        self.heard, self.made, self.given, self.endless = ({} for _ in range(4))

    def tokens(self, text):
        return [ord(text[0])] if text else []  # one token a delta, as Aero's are

    def begin(self, slot, token, manner):
        if token == ord("☠"):
            raise RuntimeError("device lost")
        self.heard[slot], self.made[slot], self.given[slot] = 1, 0, 0
        self.endless[slot] = token == ord("∞")

    def step(self, moves):
        time.sleep(FRAME_S)
        ended = set()
        for slot, move in moves.items():
            if move is not None:
                self.heard[slot] += move.side >= 0
                spoken = self.made[slot] >= self.frames_per_token * self.heard[slot]
                if move.may_end and spoken and not self.endless[slot]:
                    ended.add(slot)
                    continue
            self.made[slot] += 1
        return ended

    def pcm(self, slot, frames):
        start = self.given[slot] * FRAME_SAMPLES
        self.given[slot] += frames
        phase = np.arange(start, self.given[slot] * FRAME_SAMPLES) * (2 * np.pi * 440 / 24000)
        return np.rint(8000 * np.sin(phase)).astype(np.int16)


async def misbehave(socket, mode):
    """A TTS server with a known defect; every text gives one frame."""
    await socket.recv()
    ready = {"type": "session.ready", "sample_rate": 24000, "frame_samples": FRAME_SAMPLES}
    await socket.send(json.dumps(ready))
    frames = 0
    if mode == "done_at_once":
        await socket.recv()
        await socket.send(json.dumps({"type": "session.done", "utterances": 0}))
        return
    async for raw in socket:
        message = json.loads(raw)
        if message["type"] == "input.done" and mode in ("one_of_two", "hole"):
            counts = dict.fromkeys(("tokens", "segments", "starved_steps", "pad_steps"), 0)
            size = {"samples": frames * FRAME_SAMPLES, "frames": frames}
            done = {"type": "audio.done", "utterance": 0, "eos": "codec", **size, **counts}
            await socket.send(json.dumps(done))
            await socket.send(json.dumps({"type": "session.done", "utterances": 1}))
        if message["type"] != "input.text" or mode == "silent":
            continue
        if frames == {"one_of_two": 2, "hole": 3}.get(mode):
            continue  # what comes later is never spoken
        if mode == "tts_drop":
            socket.transport.abort()
            return
        if mode == "tts_error":
            await socket.send(json.dumps({"type": "error", "code": "oom", "message": "no memory"}))
            return
        if frames == 0:
            await socket.send(json.dumps({"type": "audio.start", "utterance": 0}))
        seq = message["seq"] + (100 if mode == "foresight" else 0)
        samples = FRAME_SAMPLES - (512 if mode == "overlap" else 0)
        header = {"type": "audio.chunk", "utterance": 0, "frame_index": frames, "frames": 1}
        header |= {"samples": samples, "text_seq_consumed": seq}
        await socket.send(json.dumps(header))
        await socket.send(bytes(samples * 2 - (mode == "odd")))
        frames += 1


async def main(port, *voice):
    info = {"model": "tone", "weights_id": None, "device": "cpu", "acceleration": "plain"}
    honest = TtsServer(Offer(ToneVoice(*voice), info, ("ryan", "serena"), ("auto", "english")))

    async def handle(socket):
        query = parse_qs(urlsplit(socket.request.path).query)
        if mode := query.get("mode", [None])[0]:
            with suppress(ConnectionClosed):  # its log must show what is wrong with the honest one
                await misbehave(socket, mode)
        else:
            await honest._connection(socket)

    async with serve(handle, "127.0.0.1", port, process_request=honest._health) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(*map(int, sys.argv[1:])))
