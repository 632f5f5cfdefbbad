"""Codes to sound: each frame is decoded with all the past the codec can see, and none is lost.

The 12 Hz decoder is causal and looks back over 72 frames, plus what its convolutions need. The last
frames of a window with 79 frames before them are those of a decode of everything (relative error
about 1e-3). One frame gives exactly 1920 samples.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from hfd.models.graphs.capture import Lane, Step
from hfd.models.tts.protocol import FRAME_SAMPLES, MAX_EMIT_FRAMES

CONTEXT_FRAMES = 79


class WindowDecoder:
    """Keeps the codes of an utterance and decodes its newest frames."""

    def __init__(self, decoder: Any, lane: Lane | None) -> None:
        """Take over a ``Qwen3TTSTokenizerV2Decoder``.

        Args:
            decoder: the codec.
            lane: where to capture the decode of a window of fixed length. A window that is not
                full is padded behind its end, which a causal decoder cannot hear.
        """
        if int(decoder.total_upsample) != FRAME_SAMPLES:
            raise ValueError(f"the codec gives {decoder.total_upsample} samples a frame")
        self._decoder = decoder
        self._window = CONTEXT_FRAMES + MAX_EMIT_FRAMES
        self._captured = lane is not None
        weight = next(decoder.parameters())
        groups = decoder.config.num_quantizers
        self._codes = torch.zeros(1, groups, self._window, dtype=torch.long, device=weight.device)
        self._filled = 0
        if lane is not None:
            transformer = decoder.pre_transformer
            self._rope, self._mask = _window_constants(transformer, self._window, weight)
            self._wav = torch.zeros(
                self._window * FRAME_SAMPLES, dtype=torch.float32, device=weight.device
            )
            self._step = Step(self._decode_window, lane, [self._wav])

    def reset(self) -> None:
        """Forget the utterance."""
        self._filled = 0

    def add(self, codes: torch.Tensor) -> None:
        """Append one frame: int64, shape [groups]."""
        if self._filled == self._window:
            self._codes[..., :-1] = self._codes[..., 1:].clone()
            self._filled -= 1
        self._codes[0, :, self._filled] = codes
        self._filled += 1

    def pcm(self, frames: int) -> np.ndarray:
        """The newest `frames` (at most 8) frames: int16, shape [frames * 1920]."""
        start = (self._filled - frames) * FRAME_SAMPLES
        end = self._filled * FRAME_SAMPLES
        if self._captured:
            self._step()
            wav = self._wav[start:end]
        else:
            wav = self._decoder(self._codes[..., : self._filled])[0, 0, start:end].float()
        return (wav * 32767.0).round().to(torch.int16).cpu().numpy()

    def _decode_window(self) -> None:
        """The decoder's own forward on the whole window, with mask and rotation made before."""
        decoder, transformer = self._decoder, self._decoder.pre_transformer
        hidden = decoder.pre_conv(decoder.quantizer.decode(self._codes)).transpose(1, 2)
        hidden = transformer.input_proj(hidden)
        for layer in transformer.layers:
            hidden = layer(hidden, attention_mask=self._mask, position_embeddings=self._rope)
        hidden = transformer.output_proj(transformer.norm(hidden)).permute(0, 2, 1)
        for blocks in decoder.upsample:
            for block in blocks:
                hidden = block(hidden)
        for block in decoder.decoder:
            hidden = block(hidden)
        self._wav.copy_(hidden.clamp(min=-1, max=1)[0, 0])


def _window_constants(
    transformer: Any, length: int, weight: torch.Tensor
) -> tuple[tuple[torch.Tensor, torch.Tensor], torch.Tensor]:
    """Rotary cosine and sine, and the additive sliding-window mask [1, 1, length, length]."""
    places = torch.arange(length, device=weight.device)
    cos, sin = transformer.rotary_emb(weight, places[None])
    distance = places[:, None] - places[None, :]
    visible = (distance >= 0) & (distance < transformer.window_size)
    mask = torch.zeros(length, length, dtype=weight.dtype, device=weight.device)
    mask = mask.masked_fill(~visible, torch.finfo(weight.dtype).min)
    return (cos, sin), mask[None, None]
