"""A16: result.json and provenance.json must tell the story that the trace tells."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from hfd.judge.clock_check import compute_s
from hfd.judge.documents import Document
from hfd.judge.findings import RESULT, TRACE, WAV, Finding
from hfd.judge.sound import audible
from hfd.judge.trace import Trace
from hfd.judge.wav_check import Chunk, Wav
from hfd.media_time import SAMPLE_RATE

TIME_S = 1e-9
"""Both sides are made from the same numbers; only the last bit of a float may differ."""

COMPUTE_S = 0.05
"""What a busy machine may take between a reading of the clock and the line that holds it."""


def played_segments(chunks: list[Chunk], rate: int) -> list[tuple[float, float]]:
    """Runs of played chunks without a gap, in media seconds."""
    runs: list[tuple[int, int]] = []
    for chunk in chunks:
        if runs and runs[-1][1] == chunk.start:
            runs[-1] = (runs[-1][0], chunk.end)
        else:
            runs.append((chunk.start, chunk.end))
    return [(start / rate, end / rate) for start, end in runs]


def told_by_trace(trace: Trace, track: np.ndarray, chunks: list[Chunk]) -> dict[str, Any]:
    """The fields of result.json that follow from the trace alone."""
    header, rate = trace.header, trace.header["output_rate"]
    texts = [line for _, line in trace.of("text")]
    audio = [line for _, line in trace.of("audio")]
    heard = [_pick(line, "t", "text", "final", "input_seq") for _, line in trace.of("heard")]
    end = next((line for _, line in trace.of("end")), {})
    heard_at = np.flatnonzero(audible(track))
    text = "".join(line["delta"] for line in texts)
    ends = [line["t"] for line in texts] + [chunk.end / rate for chunk in chunks]
    return {
        "sample_id": header["sample_id"],
        "model": header["model"],
        "clock": header["clock"],
        "sample_rate": rate,
        "media_s": header["media_samples"] / SAMPLE_RATE,
        "status": "ok" if text.strip() or len(heard_at) else "no_response",
        "text": text,
        "first_token_s": texts[0]["t"] if texts else None,
        "first_audio_s": int(heard_at[0]) / rate if len(heard_at) else None,
        "end_s": max(ends, default=None),
        "text_events": [_pick(line, "t", "delta", "input_seq") for line in texts],
        "audio_arrivals": [
            _pick(line, "t", "samples", "input_seq") | {"play_at_s": line["play_at"] / rate}
            for line in audio
        ],
        "segments": [{"start": s, "end": e} for s, e in played_segments(chunks, rate)],
        "controls": [_control(line) for _, line in trace.of("control")],
        **({"heard": heard} if heard else {}),
        "end_reason": end.get("end_reason", "media_end"),
        "truncated": end.get("truncated", False),
    }


def check_result(
    result: Document, trace: Trace, track: np.ndarray, chunks: list[Chunk]
) -> list[Finding]:
    """Compare result.json with the trace, field by field."""
    findings = []
    for name, told in told_by_trace(trace, track, chunks).items():
        path = _difference(result.value.get(name), told, (name,))
        if path:
            shown = _at(told, path[1:])
            findings.append(
                Finding(
                    "A16",
                    result.name,
                    f"{_dotted(path)} is {_short(_at(result.value, path))}, "
                    f"the trace says {_short(shown)}",
                    result.line_of(*path),
                )
            )
    return findings


def check_compute(result: Document, trace: Trace) -> list[Finding]:
    """Virtual clock: the stated compute is the time for which the run's clock ran."""
    stated = result.value["rtf"].get("compute_s")
    told = compute_s(trace)
    if trace.header["clock"] != "virtual" or not isinstance(stated, int | float) or told is None:
        return []
    if abs(stated - told) <= COMPUTE_S:
        return []
    message = f"rtf.compute_s is {stated:.3f}, the trace says {told:.3f} s"
    return [Finding("A16", result.name, message, result.line_of("rtf", "compute_s"))]


def check_reference(result: Document, task: str, question_end: float | None) -> list[Finding]:
    """Task and end of the question must be the manifest's and the adapter's."""
    findings = []
    for name, told in (("task", task), ("qend", question_end)):
        found = result.value.get(name)
        if not _same(found, told) and found != told:
            message = f"{name} is {_short(found)}, manifest and adapter say {_short(told)}"
            findings.append(Finding("A16", result.name, message, result.line_of(name)))
    return findings


_FILE_OF = {"result": RESULT, "trace": TRACE, "wav": WAV}


def check_provenance(
    provenance: Document, result: Document, trace: Trace, wav: Wav | None, wav_sha: str | None
) -> list[Finding]:
    """Compare provenance.json with the trace, the wav and result.json."""
    header, inputs = trace.header, [line for _, line in trace.of("input")]
    audio = [line for _, line in trace.of("audio")]
    cuts = [line["cleared"] for _, line in trace.of("control") if "cleared" in line]
    last = inputs[-1] if inputs else {"samples": 0, "valid_samples": 0}
    told: dict[tuple[str, ...], Any] = {
        ("sample_id",): header["sample_id"],
        ("result", "sha256"): result.sha256,
        ("trace", "lines"): len(trace.lines),
        ("trace", "tail"): trace.tail,
        ("trace", "sha256"): trace.sha256,
        ("input", "samples"): header["media_samples"],
        ("input", "frames"): header["media_frames"],
        ("input", "media_s"): header["media_samples"] / SAMPLE_RATE,
        ("contract", "unit_samples"): header["unit_samples"],
        ("contract", "output_rate"): header["output_rate"],
        ("contract", "clock"): header["clock"],
        ("clock", "name"): header["clock"],
        ("contract", "voice_origin"): result.value.get("voice_origin"),
        ("input_stream", "units"): len(inputs),
        ("input_stream", "samples_sent"): sum(line["samples"] for line in inputs),
        ("input_stream", "frames_sent"): sum(len(line["frames"]) for line in inputs),
        ("input_stream", "pad_samples_last_unit"): last["samples"] - last["valid_samples"],
        ("output_stream", "text_deltas"): len(trace.of("text")),
        ("output_stream", "audio_chunks"): len(audio),
        ("output_stream", "cleared_samples"): sum(cuts),
        ("output_stream", "samples"): sum(line["samples"] for line in audio),
        ("output_stream", "clipped_samples"): sum(line["clipped"] for line in audio),
    }
    if wav is not None:
        told |= {
            ("wav", "sha256"): wav_sha,
            ("wav", "sample_rate"): wav.rate,
            ("wav", "samples"): len(wav.pcm),
        }
    findings = []
    for path, value in told.items():
        found = _at(provenance.value, path)
        if not _difference(found, value, path):
            continue
        if path[-1] == "sha256":
            name = _FILE_OF[path[0]]
            text = f"its bytes are not those whose SHA-256 {provenance.name} states"
            findings.append(Finding("A16", name, text))
        else:
            findings.append(
                Finding(
                    "A16",
                    provenance.name,
                    f"{_dotted(path)} is {_short(found)}, the other files say {_short(value)}",
                    provenance.line_of(*path),
                )
            )
    return findings


def check_end(trace: Trace) -> list[Finding]:
    """A4: the trace must come to its end; one that was cut off is no evidence."""
    if not trace.lines or trace.lines[-1]["kind"] != "end":
        return [Finding("A4", TRACE, "the trace does not reach its end line", len(trace.lines))]
    if len(trace.of("end")) > 1:
        return [Finding("A4", TRACE, "there is more than one end line", trace.of("end")[0][0])]
    return []


def _difference(found: Any, told: Any, path: tuple[str | int, ...]) -> tuple[str | int, ...] | None:
    """Path of the first value that differs; fields that only `found` has are left alone."""
    parts: Iterable[tuple[str | int, Any, Any]]
    if isinstance(told, dict) and isinstance(found, dict):
        parts = ((key, found.get(key), told[key]) for key in told)
    elif isinstance(told, list) and isinstance(found, list) and len(told) == len(found):
        parts = zip(range(len(told)), found, told, strict=True)
    else:
        return None if _same(found, told) else path
    return next((p for key, f, t in parts if (p := _difference(f, t, (*path, key)))), None)


def _same(found: Any, told: Any) -> bool:
    numbers = (int, float)
    if isinstance(found, numbers) and isinstance(told, numbers):
        if isinstance(found, bool) or isinstance(told, bool):
            return found is told
        return abs(found - told) <= TIME_S
    return type(found) is type(told) and found == told


def _at(value: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        try:
            value = value[key]
        except (KeyError, IndexError, TypeError):
            return None
    return value


def _dotted(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{key}]" if isinstance(key, int) else f".{key}" for key in path)[1:]


def _short(value: Any) -> str:
    if isinstance(value, list):
        return f"a list of {len(value)}"
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


def _control(line: dict[str, Any]) -> dict[str, Any]:
    names = ("t", "control", "input_seq", "detail", "cut_at", "cleared")
    return {name: line[name] for name in names if name in line}


def _pick(line: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: line[name] for name in names}
