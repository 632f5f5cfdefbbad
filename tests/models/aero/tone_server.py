"""The real TTS server (socket, queue, speech policy) with a voice that hums instead of a network.

    python tone_server.py PORT

`?mode=` of the URL chooses another, misbehaving server in its place.
"""

import asyncio
import json
import sys
import time
from urllib.parse import parse_qs, urlsplit

import numpy as np
from websockets.asyncio.server import serve

from hfd.models.tts.protocol import FRAME_SAMPLES
from hfd.models.tts.server import Offer, TtsServer

FRAMES_PER_TOKEN = 2
FRAME_S = 0.01


class ToneVoice:
    """Each text token gives two frames of a tone; ends when all its tokens have been spoken.

    Text with "∞" is never ended, text with "☠" breaks the voice.
    """

    max_frames = 2048
    text_vocabulary = 0x110000

    def tokens(self, text):
        return [ord(text[0])] if text else []  # one token a delta, as Aero's are

    def begin(self, token, manner):
        if token == ord("☠"):
            raise RuntimeError("device lost")
        self.heard, self.made, self.endless = 1, 0, token == ord("∞")

    def frame(self):
        time.sleep(FRAME_S)
        self.made += 1

    def advance(self, side, may_end):
        self.heard += side >= 0
        return may_end and not self.endless and self.made >= FRAMES_PER_TOKEN * self.heard

    def pcm(self, frames):
        start = (self.made - frames) * FRAME_SAMPLES
        phase = np.arange(start, self.made * FRAME_SAMPLES) * (2 * np.pi * 440 / 24000)
        return np.rint(8000 * np.sin(phase)).astype(np.int16)


async def misbehave(socket, mode):
    """A TTS server with a known defect; every text gives one frame."""
    await socket.recv()
    ready = {"type": "session.ready", "sample_rate": 24000, "frame_samples": FRAME_SAMPLES}
    await socket.send(json.dumps(ready))
    frames = 0
    async for raw in socket:
        message = json.loads(raw)
        if message["type"] != "input.text" or mode == "silent":
            continue
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


async def main(port):
    info = {"model": "tone", "weights_id": None, "device": "cpu", "acceleration": "plain"}
    honest = TtsServer(Offer(ToneVoice(), info, ("ryan", "serena"), ("auto", "english")))

    async def handle(socket):
        query = parse_qs(urlsplit(socket.request.path).query)
        if mode := query.get("mode", [None])[0]:
            await misbehave(socket, mode)
        else:
            await honest._connection(socket)

    async with serve(handle, "127.0.0.1", port, process_request=honest._health) as server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
