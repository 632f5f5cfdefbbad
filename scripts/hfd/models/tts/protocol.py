"""Names and numbers of ``/v1/tts/stream``; the whole protocol is told in docs/tts_protocol.md."""

from __future__ import annotations

PATH = "/v1/tts/stream"
HEALTH_PATH = "/health"
PROTOCOL = "hfd-tts/1"
SAMPLE_RATE = 24_000
FRAME_SAMPLES = 1_920
"""Samples of one codec frame: 80.0 ms, of which not one is ever lost."""
FRAME_S = FRAME_SAMPLES / SAMPLE_RATE
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
MAX_SESSION_TOKENS = 20_000
"""Text tokens of one session: at one a frame, 27 minutes of speech."""
MAX_SEED = 2**63 - 1
MAX_SEQ = 2**53 - 1
"""Numbers beyond are not exact in every JSON reader."""
