"""Names and numbers of ``/v1/tts/stream``; the whole protocol is told in docs/tts_protocol.md."""

from __future__ import annotations

PATH = "/v1/tts/stream"
HEALTH_PATH = "/health"
PROTOCOL = "hfd-tts/1"
SAMPLE_RATE = 24_000
FRAME_SAMPLES = 1_920
"""Samples of one codec frame: 80.0 ms, of which not one is ever lost."""
MAX_EMIT_FRAMES = 8
"""Most frames in one chunk."""

# client to server
CONFIG = "session.config"
TEXT = "input.text"
FLUSH = "input.flush"
DONE = "input.done"
CANCEL = "input.cancel"

# server to client
READY = "session.ready"
START = "audio.start"
CHUNK = "audio.chunk"
AUDIO_DONE = "audio.done"
SESSION_DONE = "session.done"
ERROR = "error"

MAX_MESSAGE_BYTES = 1 << 20
"""A text delta is a few bytes; a client that sends more than this at once is refused."""
