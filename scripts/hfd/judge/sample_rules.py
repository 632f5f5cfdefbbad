"""Audit rules that one sample answers: from its folder and the files it should be made of."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from hfd.judge.findings import PROVENANCE, RESULT, Finding
from hfd.judge.folder import Folder
from hfd.judge.reference import Reference
from hfd.judge.verdict import Verdict, failed, passed, unknown
from hfd.media_time import SAMPLE_RATE

MAX_LAG_S = 0.5
_FEW_BITS = re.compile(r"\b(u?int[48]|[iu][48]|f8\w*|float8\w*|fp[48]|nf4|q[2-8]\w*)\b")
"""Types of quantised weights; int64 and the like are indices and pass."""


@dataclass(frozen=True)
class Policy:
    """What the project demands of a model's results.

    Attributes:
        voice_origin: what config/models.yaml says the model must deliver, or None.
        deny_sha256: hashes of videos that must not be used (the old hesitation files).
    """

    voice_origin: str | None = None
    deny_sha256: frozenset[str] = frozenset()


def judge_sample(folder: Folder, reference: Reference | None, policy: Policy) -> dict[str, Verdict]:
    """Answer every rule that a single sample can answer; set rules are in set_rules."""
    return {
        "A1": _input_identity(folder, reference, policy),
        "A2": _padding(folder, reference),
        "A3": _pacing(folder),
        "A4": _by_findings(folder, "A4", "chain, numbering and clock hold"),
        "A5": _by_findings(folder, "A5", "every output follows the input it depends on"),
        "A9": _by_findings(folder, "A9", "every chunk plays at its arrival or after the queue"),
        "A10": _rebuild(folder),
        "A11": _voice(folder, policy),
        "A12": _context(folder),
        "A13": _precision(folder),
        "A14": _completeness(folder),
        "A16": _agree(folder),
    }


def _from(findings: list[Finding]) -> Verdict:
    first = findings[0]
    more = f" (and {len(findings) - 1} more)" if len(findings) > 1 else ""
    return failed(
        f"{first.place}: {first.message}{more}",
        findings=[finding.as_dict() for finding in findings[:20]],
    )


def _by_findings(folder: Folder, code: str, good: str) -> Verdict:
    findings = [finding for finding in folder.findings if finding.rule == code]
    if findings:
        return _from(findings)
    if folder.track is None:
        return unknown("there is no readable trace")
    return passed(good, lines=len(folder.trace.lines))


def _input_identity(folder: Folder, reference: Reference | None, policy: Policy) -> Verdict:
    stated = folder.provenance.value.get("input", {})
    video = stated.get("video_sha256")
    if video in policy.deny_sha256:
        return failed("an old version of the video was fed: it is on the deny list", sha256=video)
    if reference is None:
        return unknown("the compiled files are not here to compare with")
    if video is None:
        return unknown(f"{PROVENANCE} states no hash of the video")
    files = {"video": reference.video_sha256, "adapter": reference.adapter_sha256}
    other = [name for name, now in files.items() if stated.get(f"{name}_sha256") != now]
    if other:
        return failed(
            f"not the manifest's: {' and '.join(other)}",
            stated={name: stated.get(f"{name}_sha256") for name in other},
            manifest={name: files[name] for name in other},
        )
    if folder.track is None:
        return unknown("there is no readable trace")
    return _fed_units(folder, reference)


def _fed_units(folder: Folder, reference: Reference) -> Verdict:
    """Hash the manifest's own file unit by unit and compare with what the trace says was fed."""
    pcm = _fitted(reference.pcm, folder.trace.header["media_samples"])
    for number, line in folder.trace.of("input"):
        if line["start"] >= len(pcm):
            break  # input beyond the file's end is A2's business
        part = pcm[line["start"] : line["start"] + line["valid_samples"]]
        if hashlib.sha256(part.tobytes()).hexdigest() != line["pcm_sha"]:
            return failed(
                f"the sound of unit {line['unit']} is not the file's sound",
                line=number,
                start_s=line["start"] / SAMPLE_RATE,
            )
    decoded = reference.check.get("frames_sha256")
    if decoded is None:
        return passed("files and sound are those of the manifest (pictures by the file's hash)")
    if decoded != folder.provenance.value["input"]["frames_sha256"]:
        return failed("the pictures that were fed are not the file's pictures")
    return passed("files, pictures and every unit's sound are those of the manifest")


def _fitted(pcm: np.ndarray, samples: int) -> np.ndarray:
    return np.pad(pcm[:samples], (0, max(0, samples - len(pcm))))


def _padding(folder: Folder, reference: Reference | None) -> Verdict:
    verdict = _by_findings(folder, "A2", "every unit once, zero fill only in the last")
    if verdict.status != "pass" or reference is None:
        return verdict
    stated = folder.trace.header["media_samples"] / SAMPLE_RATE
    expected = reference.sample.duration_seconds
    if abs(stated - expected) > 0.2:
        return failed(f"{stated:.2f} s were streamed, the manifest says {expected:.2f} s")
    return verdict


def _pacing(folder: Folder) -> Verdict:
    verdict = _by_findings(folder, "A3", "no unit was sent early")
    if verdict.status != "pass":
        return verdict
    trace = folder.trace
    inputs = [line for _, line in trace.of("input")]
    lags = np.array([line["t"] - line["due"] for line in inputs])
    if not len(lags):
        return unknown("nothing was sent")
    lag = {"lag_p95_ms": round(1000 * float(np.percentile(lags, 95)), 1)}
    if trace.header["clock"] == "virtual":
        return passed("each unit at max(model free, its last sample exists), virtual clock", **lag)
    took = (inputs[-1]["mono_ns"] - inputs[0]["mono_ns"]) / 1e9
    due = inputs[-1]["due"] - inputs[0]["due"]
    if took < due - MAX_LAG_S:
        return failed(f"{due:.2f} s of media were sent in {took:.2f} s of real time", **lag)
    if lags.max() > MAX_LAG_S:
        return failed(f"a unit was sent {lags.max():.2f} s late: the run was not online", **lag)
    return passed("each unit at its absolute deadline", **lag)


def _rebuild(folder: Folder) -> Verdict:
    if folder.wav is None:
        return failed("assistant_audio.wav is missing or no plain wav")
    return _by_findings(folder, "A10", "rebuilt bit for bit")


def _voice(folder: Folder, policy: Policy) -> Verdict:
    declared = folder.result.value.get("voice_origin")
    if declared is None:
        return unknown(f"{RESULT} does not say where the voice comes from")
    if policy.voice_origin is not None and declared != policy.voice_origin:
        return failed(f"voice is {declared}, the model's contract demands {policy.voice_origin}")
    if folder.track is None:
        return unknown("there is no readable trace")
    audio = folder.trace.of("audio")
    if not audio:
        return passed(f"{declared}; this sample has no sound")
    hop = folder.provenance.value.get("contract", {}).get("codec_hop_samples")
    if not hop:
        if declared == "streaming_tts":
            return passed("streaming_tts, as declared")
        return unknown(f"{declared} is declared, but no codec hop to hold its chunks against")
    for (number, line), following in zip(audio, [*audio[1:], None], strict=True):
        turn_ends = following is None or following[1]["play_at"] > line["play_at"] + line["samples"]
        if line["samples"] % hop and not turn_ends:
            return failed(
                f"a chunk of {line['samples']} samples is no multiple of the codec's {hop}: "
                "another voice made it",
                line=number,
            )
    return passed(f"{declared}; chunks are whole codec frames of {hop} samples")


def _context(folder: Folder) -> Verdict:
    """A12: the context a model reports after its steps may only grow within a sample."""
    if folder.track is None:
        return unknown("there is no readable trace")
    longest, seen = 0, False
    for number, line in folder.trace.of("metric"):
        tokens = line["values"].get("context_tokens")
        if line["values"].get("dropped_tokens"):
            return failed(f"{line['values']['dropped_tokens']} tokens were dropped", line=number)
        if not isinstance(tokens, int | float):
            continue
        if tokens < longest:
            return failed(f"context shrank from {longest} to {tokens} tokens", line=number)
        longest, seen = tokens, True
    if folder.result.value.get("truncated"):
        return unknown("the result says truncated: a limit of the model cut the answer short")
    if not seen:
        return unknown("the trace holds no context_tokens metric")
    limit = folder.provenance.value.get("model", {}).get("detail", {}).get("max_context_tokens")
    return passed(f"context grew to {longest} tokens and never shrank", tokens=longest, limit=limit)


def _precision(folder: Folder) -> Verdict:
    model = folder.provenance.value.get("model")
    if not model:
        return unknown(f"{PROVENANCE} does not name the model")
    detail = model.get("detail") or {}
    quantisation = detail.get("quantization") or detail.get("quantisation")
    if quantisation not in (None, False, "none", ""):
        return failed(f"the model is quantised: {quantisation}")
    types = detail.get("dtypes") or detail.get("parameters_by_dtype") or {}
    low = [name for name in types if _FEW_BITS.search(name.lower())]
    if low:
        return failed(f"weights of type {', '.join(low)}")
    if not model.get("weights"):
        return unknown("no hash or revision of the weights is recorded")
    told = ", ".join(types) or ", ".join(f"{k} {v}" for k, v in _precision_of(detail).items())
    if not told:
        return unknown("weights are named, but the types of their numbers are not recorded")
    return passed(f"{model['name']} ({told})", weights=model["weights"])


def _precision_of(detail: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a model of several parts says of each part's precision, as released by its makers."""
    precision = detail.get("precision")
    return precision if isinstance(precision, Mapping) else {}


def _completeness(folder: Folder) -> Verdict:
    findings = [finding for finding in folder.findings if finding.rule == "A14"]
    return _from(findings) if findings else passed("text, sound, trace and provenance are there")


def _agree(folder: Folder) -> Verdict:
    findings = [finding for finding in folder.findings if finding.rule == "A16"]
    if findings:
        return _from(findings)
    if not folder.whole:
        return unknown("a file is missing, so nothing can be compared")
    return passed("result.json and provenance.json say what the trace says")
