"""Whole files through ROMA's real runner and session, with speech forced to a third of the time."""

from __future__ import annotations

import hashlib
import tempfile
import time
from pathlib import Path
from typing import Any

from roma_bench import at, make_unit, synchronize
from roma_model import RandomRoma

from hfd.data.manifest import Sample
from hfd.models.base import SampleInfo
from hfd.models.roma.vocoder import Vocoder
from hfd.stream.events import Audio, Event, Metric, Text
from hfd.stream.reader import probe
from hfd.stream.run import Run
from hfd.stream.session import run_sample
from hfd.stream.units import Unit


def first_sound(model: RandomRoma, context_s: int) -> float:
    """Seconds from a firing second's push to its first sound, through the whole runner."""
    heard: list[float] = []
    model.open(
        SampleInfo("first", context_s + 1.0, 1280, 720, 1, Path("unused")),
        lambda e: heard.append(time.perf_counter()) if isinstance(e, Audio) else None,
    )
    model._trigger.quiet_until_s = context_s + 0.5
    prepared = [make_unit(index) for index in range(3)]
    for index in range(context_s + 1):
        synchronize()
        began = time.perf_counter()
        model.push(at(prepared[index % 3], index))
    model.close()
    return heard[0] - began


def end_to_end(model: RandomRoma, media_s: int) -> dict[str, Any]:
    """Compute per second of media of a whole file, through the runner, one third of it spoken.

    The digests of heads, texts, codes and sound say what two runs of one file had in common.
    """
    sound: list[int] = []
    contents = {name: hashlib.sha256() for name in ("heads", "text", "codes", "sound")}

    def emit(event: Event) -> None:
        if isinstance(event, Audio):
            sound.append(len(event.pcm))
            contents["sound"].update(event.pcm.tobytes())
        elif isinstance(event, Text):
            contents["text"].update(event.delta.encode())
        elif isinstance(event, Metric) and event.name == "listen":
            contents["heads"].update(repr(event.values["speak_probability"]).encode())

    def note(vocoder: Vocoder, code: int) -> None:
        contents["codes"].update(code.to_bytes(2, "big"))
        add(vocoder, code)

    add = Vocoder.add
    Vocoder.add = note

    model.open(
        SampleInfo("whole", float(media_s), 1280, 720, 1, Path("unused")),
        emit,
    )
    prepared = [make_unit(index) for index in range(3)]
    synchronize()
    began = time.perf_counter()
    for index in range(media_s):
        unit = prepared[index % 3]
        model.push(Unit(index, 16_000 * index, unit.pcm, unit.frames, 16_000, index == media_s - 1))
    model.finish()
    synchronize()
    took = time.perf_counter() - began
    model.close()
    Vocoder.add = add
    return {
        "rtf": took / media_s,
        "spoken_share": sum(sound) / 24_000 / media_s,
        "sha256": {name: content.hexdigest()[:16] for name, content in contents.items()},
    }


def through_session(model: RandomRoma, media: Path) -> dict[str, Any]:
    """A compiled file through the real session, with its files written: what its result says."""
    info = probe(media)
    sample = Sample("bench", "bench", media, None, info.seconds, {}, 1)
    run = Run("roma", "roma", vars(model.settings), 0, model.identity)
    with tempfile.TemporaryDirectory() as folder:
        result = run_sample(model, run, sample, Path(folder), fingerprint="0" * 64)
    return {**result["rtf"], "first_audio_s": result["first_audio_s"]}


def forced(kind: str) -> dict[str, Any]:
    """Settings that give 6 s of speech (24 tokens, 300 codes) every 18 s."""
    return {
        "acceleration": kind,
        "threshold": 0.0,
        "refractory_s": 18.0,
        "continuation": "stop",
        "text_tokens_per_s": 24,
        "max_codes": 300,
    }
