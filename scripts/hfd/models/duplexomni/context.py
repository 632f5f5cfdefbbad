"""How much context a file needs, told from its length and frame size before the first request.

Counts follow the model's public processors: one vision token for 32 x 32 pixels, audio tokens by
the encoder's convolution arithmetic. Words are not known beforehand and are budgeted. The server's
own count (``context_tokens``) is recorded with every slice, so the budget can be checked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from hfd.duplex.frames import FrameSize
from hfd.errors import HfdError
from hfd.models.media import sent_size

SLICE_SAMPLES = 7680
"""Input samples of one slice at 16 kHz (480 ms)."""

SYSTEM_TOKENS = 80
FRAMING_TOKENS = 26
"""Chat template and dict wrapper of one user and one assistant message."""
AUDIO_TOKENS = 8
"""One slice of sound: 48 mel frames make 6 tokens, with a start and an end."""
REPLY_TOKENS = 40
"""Budget for the thinker's dict: about 28 when silent, up to 50 in a busy slice."""
FRAME_FRAMING_TOKENS = 9
PIXELS_PER_TOKEN_SIDE = 32
TALKER_ROWS_PER_SLICE = REPLY_TOKENS + 8
"""Rows of the talker: one per reply token, six codec frames, begin and end."""


@dataclass(frozen=True)
class Limits:
    """What the servers take in one session.

    Attributes:
        thinker_tokens: THINKER_MAX_MODEL_LEN of the running thinker.
        talker_rows: fixed in the authors' talker.
        audios: sound clips in one request (limit_mm_per_prompt); one per slice.
    """

    thinker_tokens: int
    talker_rows: int = 32386
    audios: int = 888


@dataclass(frozen=True)
class Need:
    """What one file asks for.

    Attributes:
        slices, frames: how many the whole file makes.
        frame_tokens: vision tokens of one video frame.
        thinker_tokens: context of the last request and its answer.
        talker_rows: context of the talker at the last slice.
    """

    slices: int
    frames: int
    frame_tokens: int
    thinker_tokens: int
    talker_rows: int


def context_need(
    samples: int, width: int, height: int, *, picture_interval: int, long_side: int
) -> Need:
    """Count what a file of `samples` samples at 16 kHz and that video frame size needs."""
    slices = math.ceil(samples / SLICE_SAMPLES)
    frames = math.ceil(slices / picture_interval)
    sides = sent_size(width, height, FrameSize("long_side", long_side, enlarge=True))
    frame_tokens = math.prod(max(1, round(side / PIXELS_PER_TOKEN_SIDE)) for side in sides)
    return Need(
        slices=slices,
        frames=frames,
        frame_tokens=frame_tokens,
        thinker_tokens=SYSTEM_TOKENS
        + slices * (FRAMING_TOKENS + AUDIO_TOKENS + REPLY_TOKENS)
        + frames * (frame_tokens + FRAME_FRAMING_TOKENS),
        talker_rows=slices * TALKER_ROWS_PER_SLICE,
    )


def refuse_unless_fits(
    samples: int,
    width: int,
    height: int,
    limits: Limits,
    *,
    picture_interval: int,
    long_side: int,
) -> Need:
    """Return the need of a file that fits whole.

    Raises:
        HfdError: it does not fit, with the numbers and what would make it fit.
    """

    def need_at(side: int) -> Need:
        return context_need(
            samples, width, height, picture_interval=picture_interval, long_side=side
        )

    need = need_at(long_side)
    if need.slices > limits.audios or need.talker_rows > limits.talker_rows:
        raise HfdError(
            f"is too long for the servers: {need.slices} slices ({limits.audios} fit), "
            f"{need.talker_rows} talker rows ({limits.talker_rows} fit)",
            remedy="Nothing is ever cropped: leave this sample out for this model",
        )
    if need.thinker_tokens > limits.thinker_tokens:
        smaller = [
            side
            for side in range(long_side - 1, 223, -1)
            if side % PIXELS_PER_TOKEN_SIDE == 0
            and need_at(side).thinker_tokens <= limits.thinker_tokens
        ]
        frame_way = f", or picture_long_side to {smaller[0]}" if smaller else ""
        raise HfdError(
            f"needs {need.thinker_tokens} tokens of context, the thinker has "
            f"{limits.thinker_tokens}: {need.slices} slices of "
            f"{FRAMING_TOKENS + AUDIO_TOKENS + REPLY_TOKENS} and {need.frames} video frames of "
            f"{need.frame_tokens + FRAME_FRAMING_TOKENS}; nothing was sent, nothing is cropped",
            remedy=f"Set THINKER_MAX_MODEL_LEN (stack.max_model_len) to {need.thinker_tokens} "
            f"or more{frame_way}, for all samples of the run",
        )
    return need
