"""Where a second's time goes: each part waited for, so that nothing hides behind anything else."""

from __future__ import annotations

import contextlib
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import torch


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


@contextlib.contextmanager
def watched(owner: Any, name: str, see: Callable[[Any], None]) -> Iterator[None]:
    """Let `see` have what a method gives back; the object is left as it was."""
    with replaced(owner, name, lambda call: _seen(call, see)):
        yield


def _seen(call: Callable[..., Any], see: Callable[[Any], None]) -> Callable[..., Any]:
    def run(*args: Any, **more: Any) -> Any:
        out = call(*args, **more)
        see(out)
        return out

    return run


@contextlib.contextmanager
def replaced(owner: Any, name: str, wrap: Callable[[Any], Any]) -> Iterator[None]:
    """One method of one object replaced for a while."""
    before = owner.__dict__.get(name)
    setattr(owner, name, wrap(getattr(owner, name)))
    try:
        yield
    finally:
        if before is None:
            delattr(owner, name)
        else:
            setattr(owner, name, before)


class Split:
    """Milliseconds of each part in listening and in speaking seconds."""

    def __init__(self) -> None:
        self._now: dict[str, float] = defaultdict(float)
        self._calls: dict[str, int] = defaultdict(int)
        self._watching = False
        self._seconds: dict[bool, list[dict[str, float]]] = {True: [], False: []}
        self._counts: dict[bool, list[dict[str, int]]] = {True: [], False: []}

    @contextlib.contextmanager
    def watching(self, duplex: Any) -> Iterator[None]:
        """Take the time of the parts of upstream's loop while this lasts."""
        model = duplex.model
        vocoder = model.tts.audio_tokenizer
        parts = {
            "images: prepare": (duplex.processor, "process_image"),
            "images: encode": (model, "get_vision_embedding"),
            "sound: log-mel": (duplex.processor, "process_audio_streaming"),
            "sound: encode": (model, "get_audio_embedding_streaming"),
            "text: read": (duplex.decoder, "feed"),
            "text: draw": (duplex.decoder, "decode"),
            "speech: all codes": (model.tts, "generate_chunk"),
            "speech: of it the transformer": (model.tts.model, "forward"),
            "vocoder: all": (vocoder, "stream"),
            "vocoder: of it the encoder": (vocoder.flow.encoder, "forward_chunk"),
            "vocoder: of it the solver": (vocoder.flow.decoder, "forward_chunk"),
            "vocoder: of it the wave": (vocoder.hift, "forward"),
        }
        with contextlib.ExitStack() as stack:
            for label, (owner, name) in parts.items():
                stack.enter_context(replaced(owner, name, self._timer(label)))
            self._watching = True
            yield

    def _timer(self, label: str) -> Callable[[Any], Any]:
        def wrap(call: Callable[..., Any]) -> Callable[..., Any]:
            def run(*args: Any, **more: Any) -> Any:
                synchronize()
                began = time.perf_counter()
                out = call(*args, **more)
                synchronize()
                self._now[label] += time.perf_counter() - began
                self._calls[label] += 1
                return out

            return run

        return wrap

    def end_second(self, speaking: bool) -> None:
        if self._watching:
            self._seconds[speaking].append(dict(self._now))
            self._counts[speaking].append(dict(self._calls))
            self._now.clear()
            self._calls.clear()

    def summary(self) -> dict[str, dict[str, str]]:
        """Means, as "milliseconds in calls"."""
        return {
            kind: {
                label: f"{1000 * _mean(self._seconds[speaking], label):.2f} in"
                f" {_mean(self._counts[speaking], label):.1f}"
                for label in sorted({name for second in self._seconds[speaking] for name in second})
            }
            for kind, speaking in (("listening", False), ("speaking", True))
        }


def _mean(seconds: list[dict[str, Any]], label: str) -> float:
    return sum(second.get(label, 0) for second in seconds) / len(seconds)
