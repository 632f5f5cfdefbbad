"""Codes to sound: in one exact call per piece, or in chunks that overlap.

One call sees all codes of a piece. In chunks, each chunk is decoded in a window of codes: the
chunk itself, `LOOK_BACK` blocks before it and one block after it. Windows begin on the borders of
the flow model's own blocks and start from the same noise per mel frame, so they differ from the
one call only by what lies outside the window. Neighbouring windows both decode the last code of
the earlier chunk; its samples are cross-faded, so nothing is lost, doubled or broken off.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
import torch

from hfd.models.roma.steps import FRAMES_PER_CODE, HOP, Sound, Steps

CHUNK_BLOCKS = (1, 2, 4)
"""Chunk lengths in blocks (12 codes, 0.24 s): short at first, to start early; the last repeats."""
LOOK_BACK = 2
LOOK_AHEAD = 1
"""Blocks of codes decoded with a chunk and thrown away. The first chunk does not look ahead."""


class Vocoder:
    """Sound of one piece.

    Args:
        steps: makes mel frames and samples.
        noise: gives the noise of one block, [frames per block, 80], by the block's number.
        block: codes in one block of the flow model.
        whole: whether to wait for all codes and decode them in one call.
    """

    def __init__(
        self, steps: Steps, noise: Callable[[int], torch.Tensor], block: int, whole: bool
    ) -> None:
        self._steps = steps
        self._make_noise = noise
        self._noise: list[torch.Tensor] = []
        self._block = block
        self._whole = whole
        self._codes: list[int] = []
        self._chunks = 0
        self._done = 0
        self._tail: np.ndarray | None = None
        self._making: deque[tuple[Sound, int, int]] = deque()
        self._ready: list[np.ndarray] = []

    @property
    def codes(self) -> int:
        """Codes taken so far."""
        return len(self._codes)

    def add(self, code: int) -> None:
        """Take one code."""
        self._codes.append(code)
        if self._whole:
            return
        blocks = CHUNK_BLOCKS[min(self._chunks, len(CHUNK_BLOCKS) - 1)]
        ahead = LOOK_AHEAD if self._chunks else 0
        end = self._done + blocks * self._block
        if len(self._codes) == end + ahead * self._block:
            self._decode(end, len(self._codes))

    def end(self) -> None:
        """The piece is over: make what is left and wait for it."""
        if len(self._codes) > self._done:
            self._decode(len(self._codes), len(self._codes))
        self.wait()
        if self._tail is not None:
            self._ready.append(self._tail)
            self._tail = None

    def wait(self) -> None:
        """Wait for the sound that is being made."""
        while self._making:
            self._join(*self._making.popleft())

    def take(self) -> list[np.ndarray]:
        """Sound that has become ready, float32 [multiple of 480] each."""
        while self._making and self._making[0][0].is_ready():
            self._join(*self._making.popleft())
        ready, self._ready = self._ready, []
        return ready

    def _decode(self, end: int, window_end: int) -> None:
        """Begin the chunk from what is done to code `end`, seen in a window to `window_end`."""
        start = max(0, self._done - LOOK_BACK * self._block)
        codes = torch.tensor(self._codes[start:window_end])
        sound = self._steps.start_sound(codes, self._noise_of(start, window_end))
        self._making.append((sound, self._done - start, end - start))
        self._done = end
        self._chunks += 1

    def _join(self, sound: Sound, begin: int, end: int) -> None:
        """Append codes [begin, end) of a window, faded over from the chunk before."""
        overlap = 1 if self._tail is not None else 0
        chunk = sound.samples()[(begin - overlap) * HOP : end * HOP].copy()
        if self._tail is not None:
            fade = np.linspace(0, 1, HOP, dtype=np.float32)
            chunk[:HOP] = self._tail * (1 - fade) + chunk[:HOP] * fade
        self._tail = chunk[-HOP:]
        if len(chunk) > HOP:
            self._ready.append(chunk[:-HOP])

    def _noise_of(self, start: int, end: int) -> torch.Tensor:
        """Noise of the codes [start, end), the same whatever window asks for it."""
        while len(self._noise) * self._block < end:
            self._noise.append(self._make_noise(len(self._noise)))
        joined = torch.cat(self._noise)
        return joined[start * FRAMES_PER_CODE : end * FRAMES_PER_CODE]


def block_noise(seed: int, frames: int, mel_dim: int) -> Callable[[int], torch.Tensor]:
    """Normal noise per block, drawn on the CPU so that every device gets the same."""

    def make(block: int) -> torch.Tensor:
        generator = torch.Generator().manual_seed(seed * 65_537 + block + 1)
        return torch.randn(frames, mel_dim, generator=generator)

    return make
