"""The sound of a session on its way out and in: rate, codec, odd bytes."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from hfd.duplex.units import Unit
from hfd.errors import HfdError
from hfd.media_time import SAMPLE_RATE
from hfd.models.realtime.dialect import Traits
from hfd.pcm import to_int16

RESAMPLER = "soxr stream, HQ"


class _Resampler:
    """A stream at another rate: exact in length after the last unit, never piece by piece."""

    def __init__(self, rate: int) -> None:
        try:
            import soxr
        except ModuleNotFoundError as error:
            raise HfdError(
                f"must be resampled to {rate} Hz, which needs the Python package soxr",
                field="settings.input_rate",
                remedy="Use an environment made from requirements/realtime.txt",
            ) from error
        self._stream = soxr.ResampleStream(SAMPLE_RATE, rate, 1, dtype="float32", quality="HQ")

    def __call__(self, pcm: np.ndarray, last: bool) -> np.ndarray:
        out: np.ndarray = self._stream.resample_chunk(pcm, last=last)
        return out


class Outgoing:
    """Units as the server takes them."""

    def __init__(self, traits: Traits) -> None:
        self._traits = traits
        rate = traits.input_rate
        self._resample = None if rate == SAMPLE_RATE else _Resampler(rate)
        self._whole = traits.unit_samples * rate // SAMPLE_RATE if traits.exact_units else None
        self._held = np.zeros(0, np.float32)
        self._opus = _opus_writer(rate) if traits.codec == "opus" else None

    def __call__(self, unit: Unit) -> list[bytes]:
        """What becomes of one unit: pieces in the server's rate and codec (none: held back)."""
        pcm = self._resample(unit.pcm, unit.is_last) if self._resample else unit.pcm
        if self._whole is None:
            return [self._encoded(pcm)] if len(pcm) else []
        held = np.concatenate([self._held, pcm])
        if unit.is_last and (rest := -len(held) % self._whole):
            held = np.pad(held, (0, rest))  # a sample or two that the resampler rounded away
        count = len(held) // self._whole
        self._held = held[count * self._whole :]
        pieces = held[: count * self._whole].reshape(count, self._whole)
        return [self._encoded(piece) for piece in pieces]

    def _encoded(self, pcm: np.ndarray) -> bytes:
        if self._opus is not None:
            return bytes(self._opus.append_pcm(np.ascontiguousarray(pcm, np.float32)))
        if self._traits.codec == "f32":
            return pcm.astype("<f4").tobytes()
        return to_int16(pcm).tobytes()


class Incoming(Protocol):
    """Bytes of the server's voice to samples."""

    def __call__(self, data: bytes, item: str) -> np.ndarray:
        """int16, shape [samples]; may be empty.

        Raises:
            ValueError: not the stream that it should be.
        """


class IncomingPcm:
    """PCM16; a sample that is split over two messages is joined."""

    def __init__(self) -> None:
        self._odd: dict[str, bytes] = {}

    def __call__(self, data: bytes, item: str) -> np.ndarray:
        data = self._odd.pop(item, b"") + data
        if len(data) % 2:
            self._odd[item] = data[-1:]
            data = data[:-1]
        return np.frombuffer(data, "<i2").astype(np.int16)


class IncomingOpus:
    """Ogg pages with Opus packets, decoded as one stream."""

    def __init__(self, rate: int) -> None:
        self._reader = _sphn().OpusStreamReader(rate)

    def __call__(self, data: bytes, item: str) -> np.ndarray:
        return to_int16(self._reader.append_bytes(data))


def incoming(traits: Traits) -> Incoming:
    """The decoder for one session."""
    return IncomingOpus(traits.output_rate) if traits.codec == "opus" else IncomingPcm()


def _opus_writer(rate: int) -> Any:
    return _sphn().OpusStreamWriter(rate)


def _sphn() -> Any:
    try:
        import sphn
    except ModuleNotFoundError as error:
        raise HfdError(
            "needs the Python package sphn for Opus",
            field="settings.dialect",
            remedy="Use an environment made from requirements/realtime.txt",
        ) from error
    return sphn
