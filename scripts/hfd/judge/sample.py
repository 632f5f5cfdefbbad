"""Everything the audit knows of one result: verdicts, metrics, and what the report draws."""

from __future__ import annotations

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hfd.judge import curves, metrics
from hfd.judge.after_interruption import after_interruption
from hfd.judge.delivered import turns_of
from hfd.judge.folder import Folder, differs_from_store, read_folder
from hfd.judge.intervals import Interval
from hfd.judge.measures import trace_measures
from hfd.judge.metrics import Answer, Arrival
from hfd.judge.official import official_scores, scores_of
from hfd.judge.reference import Reference
from hfd.judge.result_check import check_reference
from hfd.judge.rules import RULES, judge_sample
from hfd.judge.rules.rule import Policy, SampleCase
from hfd.judge.run_facts import run_facts
from hfd.judge.sensitivity import other_values
from hfd.judge.shared_times import (
    sessions_of,
    without_other_times,
    without_times,
    without_timings,
)
from hfd.judge.speech import detect, onsets, sound_starts
from hfd.judge.trace import Trace
from hfd.judge.transcript import NOTHING_HEARD, Transcripts, compared
from hfd.judge.verdict import NOT_EVIDENCED, Verdict, unknown
from hfd.judge.voiceprint import voiceprint
from hfd.media_time import SAMPLE_RATE


@dataclass
class Record:
    """One model's result for one sample, small enough to keep thousands in memory.

    Attributes:
        status: ``ok``, ``no_response``; by the recorded error ``failed``, ``refused`` or
            ``service_error``; ``missing`` or ``ineligible`` (files that cannot be trusted to be
            measured).
        reason: why it is not ok, empty otherwise.
        verdicts: rule code to answer.
        metrics: metric name to value (hfd.judge.metrics), empty where nothing can be measured.
        drawing: segments, text and audio arrivals, pacing, for the report.
        facts: hashes, counts and identities that rules over all samples compare.
    """

    model: str
    sample_id: str
    task: str
    status: str
    reason: str
    verdicts: dict[str, Verdict]
    metrics: dict[str, Any]
    drawing: dict[str, Any]
    facts: dict[str, Any]


def absent(
    model: str, sample_id: str, task: str, error: str | None, lost_as: str = "failed"
) -> Record:
    """The record of a sample without a result: lost with an error, or simply missing."""
    status = lost_as if error else "missing"
    return Record(model, sample_id, task, status, error or "no result", {}, {}, {}, {})


def audit_sample(
    path: Path,
    model: str,
    task: str,
    reference: Reference | None,
    policy: Policy,
    store: Path | None = None,
    transcripts: Transcripts = NOTHING_HEARD,
    measured: bool = True,
) -> Record:
    """Read, check and measure one result folder; `store` is the worker's own copy of it.

    Without `measured` the record holds what rules ask for, and neither metrics nor a drawing.
    """
    folder = read_folder(path)
    if reference is not None and folder.result.usable:
        ends = [event.end for event in reference.adapter.events] if reference.adapter else []
        told = max(ends, default=None)
        folder.findings.extend(check_reference(folder.result, reference.sample.task, told))
    if store is not None:
        folder.findings.extend(differs_from_store(path, store))
    detection = detect(folder.wav.pcm, folder.wav.rate) if folder.wav else None
    segments = detection.segments() if detection else []
    verdicts = judge_sample(SampleCase(folder, reference, policy, transcripts, segments))
    if not folder.whole or folder.wav is None or detection is None:
        reason = str(folder.findings[0]) if folder.findings else "files are missing"
        facts = {"wav_sha256": folder.wav_sha}
        return Record(model, path.name, task, "ineligible", reason, verdicts, {}, {}, facts)
    answer = answer_of(folder, segments)
    question = reference.question if reference else None
    shared = sessions_of(folder) > 1
    values, under = {"speech_s": _speech_s(answer)}, {}
    if measured:
        values = measure(answer, folder, reference, transcripts)
        under = other_values(detection, answer, question) if question else {}
    if shared:
        values = without_times(values)
        under = without_other_times(under)
    return Record(
        model=model,
        sample_id=path.name,
        task=task,
        status=folder.result.value["status"],
        reason="",
        verdicts=verdicts,
        metrics=values,
        drawing=_drawing(folder, answer) if measured else {},
        facts=_facts(folder, segments, reference) | {"under": under},
    )


def judged_or_not(
    folder: Path,
    model: str,
    task: str,
    reference: Reference | str,
    policy: Policy,
    **more: Any,
) -> Record:
    """`audit_sample`, where the reference may be missing for a reason; an error costs this alone.

    What others made may hold what nobody thought of: such a sample is not judged, neither right
    nor wrong, and the others go on.
    """
    try:
        found = None if isinstance(reference, str) else reference
        record = audit_sample(folder, model, task, found, policy, **more)
    except Exception as error:
        return not_judged(folder, model, task, error)
    if isinstance(reference, str) and record.verdicts["A1"].status == NOT_EVIDENCED:
        record.verdicts["A1"] = unknown(reference)
    return record


def not_judged(folder: Path, model: str, task: str, error: Exception) -> Record:
    """The record of a sample on which the audit itself failed."""
    reason = f"the audit could not judge it ({type(error).__name__}: {error})"[:500]
    facts = {"not_judged": True, "wav_sha256": None}
    verdicts = {rule.code: unknown(reason) for rule in RULES if rule.of_sample is not None}
    return Record(model, folder.name, task, "ineligible", reason, verdicts, {}, {}, facts)


def answer_of(folder: Folder, segments: list[Interval]) -> Answer:
    """The model's side of the metrics, from trace and wav."""
    trace, rate = folder.trace, folder.trace.header["output_rate"]
    return Answer(
        segments=segments,
        texts=[(line["t"], line["delta"]) for _, line in trace.of("text")],
        audio=[
            Arrival(line["t"], line["samples"], line["play_at"] / rate)
            for _, line in trace.of("audio")
        ],
        rate=rate,
        media_s=trace.header["media_samples"] / SAMPLE_RATE,
        compute_s=folder.result.value["rtf"].get("compute_s"),
    )


def measure(
    answer: Answer, folder: Folder, reference: Reference | None, transcripts: Transcripts
) -> dict[str, Any]:
    """All metrics that one sample allows; the question's are None without an adapter."""
    assert folder.wav is not None
    pcm = folder.wav.pcm
    values: dict[str, Any] = {}
    question = reference.question if reference else None
    if question is not None and reference is not None:
        values |= metrics.hesitation_metrics(answer, question)
        values |= metrics.response_metrics(answer, question)
        values["h22_stale_share"] = _stale(answer, reference)
    if reference is not None:
        values |= official_scores(answer, scores_of(reference.sample.row))
    values |= metrics.delivery_metrics(answer, pcm)
    values |= {
        f"onset_{name}_s": value
        for name, value in asdict(onsets(pcm, answer.rate, list(answer.segments))).items()
    }
    values["speech_s"] = _speech_s(answer)
    heard = transcripts.heard.get(folder.wav_sha or "")
    return values | compared(turns_of(folder.trace, folder.chunks), answer.segments, heard)


def _speech_s(answer: Answer) -> float:
    return sum(part.length for part in answer.segments)


def _stale(answer: Answer, reference: Reference) -> float | None:
    adapter = reference.adapter
    if adapter is None or adapter.first is None or adapter.second is None:
        return None
    first, second = (
        event.text or event.spoken_text or "" for event in (adapter.first, adapter.second)
    )
    return metrics.stale_share("".join(delta for _, delta in answer.texts), first, second)


def _drawing(folder: Folder, answer: Answer) -> dict[str, Any]:
    assert folder.wav is not None
    trace = folder.trace
    inputs = [line for _, line in trace.of("input")]
    due = {line["unit"]: line["due"] for line in inputs}
    outputs = [line for _, line in trace.of("text", "audio")]
    return {
        "media_s": answer.media_s,
        "wav_s": folder.wav.seconds,
        "clock": trace.header["clock"],
        "segments": [[round(p.start, 3), round(p.end, 3)] for p in answer.segments],
        "texts": [[round(t, 3), delta] for t, delta in answer.texts],
        "audio": [
            [round(a.t, 3), round(a.play_at, 3), round(a.samples / answer.rate, 3)]
            for a in answer.audio
        ],
        "controls": [[round(line["t"], 3), line["control"]] for _, line in trace.of("control")],
        "outputs": [
            [round(line["t"], 3), round(due.get(line["input_seq"], 0.0), 3)] for line in outputs
        ],
        "inputs": [[round(line["due"], 3), round(line["t"], 3)] for line in inputs],
        "context": curves.context_curve(trace),
    }


def _facts(folder: Folder, segments: list[Interval], reference: Reference | None) -> dict[str, Any]:
    """What rules over a whole model need; see the rules' `of_model`."""
    assert folder.wav is not None
    trace, value = folder.trace, folder.result.value
    done = next((number for number, _ in trace.of("input_done")), len(trace.lines))
    outputs = trace.of("text", "audio")
    provenance = folder.provenance.value
    texts = [line["t"] for _, line in trace.of("text")]
    audio = [line["t"] for _, line in trace.of("audio")]
    question = reference.question if reference else None
    turns = turns_of(trace, folder.chunks)
    silent = not folder.wav.pcm.any()
    sessions = sessions_of(folder)
    measures = trace_measures(trace, question.q1 if question else None)
    return {
        "wav_sha256": folder.wav_sha,
        "silent": silent,
        "truncated": value["truncated"],
        "sound_sha256": sound_digest(folder.wav.pcm),
        "cut": any(turn.cut for turn in turns),
        "after_interruption": after_interruption(turns, question),
        "times": _times_digest(trace),
        "tail": trace.tail,
        "provenance_sha256": folder.provenance.sha256,
        "attempt": provenance["attempt"],
        "text": "".join(line["delta"] for _, line in trace.of("text")),
        "text_times": texts,
        "audio_times": audio,
        "speech": [(round(part.start, 3), round(part.end, 3)) for part in segments],
        "runs": [segment["start"] for segment in value["segments"]],
        "sounds": sound_starts(folder.wav.pcm, folder.wav.rate),
        "after_end": bool(outputs) and all(number > done for number, _ in outputs),
        "clock": trace.header["clock"],
        "unit_s": trace.header["unit_samples"] / SAMPLE_RATE,
        "lags": curves.lag_counts(trace) if sessions == 1 else [],
        "context": curves.by_second(curves.context_curve(trace)),
        "q1": question.q1 if question else value["qend"],
        "voice": None if silent else voiceprint(folder.wav.pcm, folder.wav.rate, segments),
        "identity": {
            "weights": provenance["model"].get("weights"),
            "name": provenance["model"].get("name"),
            "model": trace.header["model"],
            "module": provenance["model"]["module"],
            "recipe": provenance.get("recipe"),
            "contract": provenance["contract"],
            "settings": provenance["model"].get("settings"),
            "sessions": sessions,
            "acceleration": (provenance["model"].get("detail") or {}).get("acceleration"),
            "output_rate": trace.header["output_rate"],
        },
        "code": provenance["code"],
        "run": run_facts(provenance),
        "sessions": sessions,
        "measures": measures if sessions == 1 else without_timings(measures),
        "compute_s": value["rtf"].get("compute_s") if sessions == 1 else None,
        "voice_origin": value["voice_origin"],
        "input_sha256": reference.video_sha256 if reference else None,
    }


def _times_digest(trace: Trace) -> str | None:
    """Hash of the times of all lines; a run of the same file has other microseconds."""
    times = [line["t"] for line in trace.lines]
    outputs = trace.of("text", "audio")
    return hashlib.sha256(repr(times).encode()).hexdigest() if outputs else None


def sound_digest(pcm: np.ndarray) -> str | None:
    """SHA-256 of the sound between its first and last sample that is not zero."""
    sounding = pcm != 0
    if not sounding.any():
        return None
    first, last = sounding.argmax(), len(pcm) - sounding[::-1].argmax()
    return hashlib.sha256(pcm[first:last].tobytes()).hexdigest()
