"""Whole files through ROMA's real runner and session, with speech forced to a third of the time."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from hfd.data.manifest import read_manifest
from hfd.duplex.events import Audio, Event, Metric, Text
from hfd.duplex.model import SampleInfo
from hfd.files import read_json
from hfd.jobs.plan import Plan, save_plan
from hfd.jobs.shard_job import run_shard_job
from hfd.jobs.spec import ModelSpec
from hfd.jobs.store import Store
from hfd.models.roma.vocoder import Vocoder
from roma_bench import at, make_unit, synchronize
from roma_model import GivenRoma


def first_sound(model: GivenRoma, context_s: int) -> float:
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


def end_to_end(model: GivenRoma, media_s: int) -> dict[str, Any]:
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
        at_second = {"index": index, "start": 16_000 * index, "is_last": index == media_s - 1}
        model.push(replace(unit, **at_second))
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


def through_worker(work: Path, spec: ModelSpec) -> dict[str, Any]:
    """Every sample of a working folder through the shard worker, from an empty store.

    Args:
        work: has data/manifest.jsonl; the results stay in ``work/<model>/store`` below it.
        spec: the model.

    Returns:
        The worker's seconds and, by sample, what its result says of its speed.
    """
    with contextlib.chdir(work):
        store = Store(Path(), spec.name)
        shutil.rmtree(store.folder, ignore_errors=True)
        manifest = Path("data/manifest.jsonl")
        ids = [sample.sample_id for sample in read_manifest(manifest, Path())]
        save_plan(store.plan, Plan(1, {"all": ids}))
        began = time.perf_counter()
        run_shard_job(spec, "all", manifest, 0, Path(f"logs/{spec.name}.log"))
        took = time.perf_counter() - began
        results = {name: read_json(store.entry(name) / "result.json") for name in ids}
    rows = {
        name: {**result["rtf"], "first_audio_s": result["first_audio_s"]}
        for name, result in results.items()
    }
    return {"worker_s": took, "samples": rows}


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
