"""Probes that run a sample with a part of its sound changed, and compare what was said.

For each sample: a run as it is, which is also compared with what was delivered, a second one to see
whether the model is deterministic, and one with another sound. *prefix* changes it only after T, in
the middle of what the model said in the first run; *needle* only before T, up to the end of the
first of several utterances (or half of a single one).
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from hfd.data.adapter import read_adapter
from hfd.data.altered import with_sound
from hfd.data.compiled_tracks import read_sound
from hfd.data.manifest import Sample
from hfd.errors import HfdError
from hfd.files import read_json
from hfd.judge.probe import needle_reach, overall, prefix_invariance, rerun_of
from hfd.judge.trace import Trace, read_trace
from hfd.judge.verdict import FAIL, Verdict, unknown
from hfd.media_time import SAMPLE_RATE
from hfd.probes.bench import Bench
from hfd.stream.provenance import code_version, environment

AUDIBLE = 300
"""int16; a part of the file with less is silence."""


def candidates(samples: Sequence[Sample], tails: Mapping[str, str]) -> list[str]:
    """The samples that can be probed: with an adapter and a result.

    Raises:
        HfdError: there is none.
    """
    ids = [s.sample_id for s in samples if s.adapter is not None and s.sample_id in tails]
    if not ids:
        raise HfdError(
            "has no sample with an adapter that has a result",
            field="manifest",
            remedy="Run the model first: a probe belongs to results",
        )
    return ids


def probe(kind: str, bench: Bench, chosen: Sequence[Sample]) -> dict[str, Any]:
    """The probe's answer, with that of each sample in its evidence."""
    verdicts = [(sample.sample_id, probed(kind, bench, sample)) for sample in chosen]
    answer = overall(verdicts).as_dict()
    answer["evidence"]["by_sample"] = {name: verdict.as_dict() for name, verdict in verdicts}
    return answer


def probed(kind: str, bench: Bench, sample: Sample) -> Verdict:
    """The probe's answer for one sample, and whether its unchanged run is the delivered one."""
    shutil.rmtree(bench.scratch / sample.sample_id, ignore_errors=True)
    verdict = KINDS[kind](bench, sample)
    kept, again = (bench.folder(sample, name) / "trace.jsonl.gz" for name in ("kept", "again"))
    if not kept.is_file():
        return verdict
    folder = bench.results / sample.sample_id
    rerun = rerun_of(
        read_trace(folder / "trace.jsonl.gz"),
        read_trace(kept),
        read_trace(again) if again.is_file() else None,
        _same_place(read_json(folder / "provenance.json")),
    )
    verdict.evidence["rerun"] = rerun.as_dict()
    return rerun if rerun.status == FAIL else verdict


def _same_place(provenance: dict[str, Any]) -> bool:
    """Whether code, packages and device here are those of a delivered result."""
    here = environment()
    same = (provenance["env"].get(name) == here[name] for name in ("python", "packages", "gpu"))
    return provenance["code"] == code_version() and all(same)


def prefix(bench: Bench, sample: Sample) -> Verdict:
    """A6: the sound changed only after T."""
    sound = read_sound(sample.video)
    kept = _trace(bench, sample, "kept", sound)
    end = middle(kept)
    if end is None:
        return unknown("the model said nothing while the file played")
    again = _trace(bench, sample, "again", sound)
    changed = _trace(bench, sample, "changed", changed_between(sound, end, None))
    return prefix_invariance(kept, again, changed, end)


def needle(bench: Bench, sample: Sample) -> Verdict:
    """A12: the sound changed only before T."""
    adapter = read_adapter(sample.adapter) if sample.adapter else None
    events = sorted(adapter.events if adapter else (), key=lambda event: event.start)
    if not events:
        return unknown("the adapter does not say when the user speaks")
    first = events[0]
    end = first.end if len(events) > 1 else (first.start + first.end) / 2
    sound = read_sound(sample.video)
    kept = _trace(bench, sample, "kept", sound)
    again = _trace(bench, sample, "again", sound)
    changed = _trace(bench, sample, "changed", changed_between(sound, 0.0, end))
    return needle_reach(kept, again, changed, end, max(event.end for event in events))


KINDS: Mapping[str, Callable[[Bench, Sample], Verdict]] = {"prefix": prefix, "needle": needle}


def _trace(bench: Bench, sample: Sample, name: str, sound: np.ndarray) -> Trace:
    """The trace of a run of the sample with this sound (int16 at 16 kHz)."""
    video = bench.folder(sample, name).with_suffix(".mp4")
    video.parent.mkdir(parents=True, exist_ok=True)
    with_sound(sample.video, sound, video)
    return read_trace(bench.runs(replace(sample, video=video), name) / "trace.jsonl.gz")


def middle(trace: Trace) -> float | None:
    """Media second at which the unit ends that the middle output depends on; T of the probe."""
    due = {line["unit"]: line["due"] for _, line in trace.of("input")}
    last = max(due, default=-1)
    units = [line["input_seq"] for _, line in trace.of("text", "audio") if line["input_seq"] < last]
    return due[units[len(units) // 2]] if units else None


def changed_between(sound: np.ndarray, start: float, end: float | None) -> np.ndarray:
    """The sound with `start` to `end` (seconds) replaced: speech by silence, silence by speech."""
    part = slice(round(start * SAMPLE_RATE), None if end is None else round(end * SAMPLE_RATE))
    changed = sound.copy()
    if _loud(sound[part]).any():
        changed[part] = 0
        return changed
    rest = np.concatenate([sound[: part.start], sound[part.stop or len(sound) :]])[::-1]
    heard = rest[int(_loud(rest).argmax()) :]
    changed[part] = np.resize(heard, len(sound[part]))
    return changed


def _loud(sound: np.ndarray) -> np.ndarray:
    return np.abs(sound.astype(np.int32)) > AUDIBLE
