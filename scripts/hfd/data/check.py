"""Is a compiled sample what it should be? One verdict per sample, ours or delivered.

Nothing here raises on bad media: whatever is wrong becomes a finding with its evidence.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from hfd.data.adapter import ADAPTER_SCHEMA, Adapter, read_adapter
from hfd.data.check_sound import check_events, check_sound
from hfd.data.check_tail import check_tail
from hfd.data.decode import Decoded, decode, pcm_digest
from hfd.data.fields import lookup
from hfd.data.finding import Finding, Status, worst
from hfd.data.manifest import HESITATION
from hfd.errors import HfdError
from hfd.files import sha256_file
from hfd.media_time import FPS, SAMPLE_RATE, VIDEO_FRAME_SAMPLES

_AAC_EXTRA = 1024
"""Samples that the last AAC frame may add; readers cut them at the last video frame's end."""
_DURATION_S = 0.001
_ROUNDED_S = 0.1


@dataclass(frozen=True)
class Subject:
    """The sample to check, as the manifest names it."""

    sample_id: str
    task: str
    video: Path
    adapter: Path | None
    duration_seconds: float


def check_sample(subject: Subject, denied: Set[str] = frozenset()) -> dict[str, Any]:
    """Check one sample.

    Args:
        subject: the sample.
        denied: SHA-256 of videos that must not be used, for example the old hesitation videos.

    Returns:
        The verdict (workflow/schemas/check.schema.yaml): ``status``, ``findings``, and the hashes
        and lengths of what was decoded, null where there was nothing to decode.
    """
    findings: list[Finding] = []
    video_sha = _hash(subject.video, "video", findings)
    adapter_sha = _hash(subject.adapter, "adapter", findings) if subject.adapter else None
    adapter = _adapter(subject, findings)
    found = _decode(subject.video, findings) if video_sha else None
    pcm = None
    if found and found.frames:
        pcm = _to_length(found.pcm, found.frames * VIDEO_FRAME_SAMPLES)
        findings += [_format(found), _grid(found), _sound_times(found)]
        findings += [_length(found), _duration(found, subject)]
        findings.append(check_tail(found, pcm))
        if adapter:
            events = check_events(adapter, subject.task, len(pcm))
            findings.append(events)
            first, second = adapter.first, adapter.second
            if subject.task == HESITATION and events.status == "ok" and first and second:
                findings.append(check_sound(first, second, found, pcm))
    findings.append(_denied(video_sha, denied))
    if adapter and adapter.row.get("schema") == ADAPTER_SCHEMA:
        findings.append(_record(adapter, video_sha))
    return {
        "schema": "hfd-check/1",
        "sample_id": subject.sample_id,
        "task": subject.task,
        "status": worst(findings),
        "findings": [finding.as_dict() for finding in findings],
        "video_sha256": video_sha,
        "adapter_sha256": adapter_sha,
        "pcm_sha256": pcm_digest(pcm) if pcm is not None else None,
        "frames_sha256": found.frames_sha256 if found else None,
        "samples": len(pcm) if pcm is not None else None,
        "frames": found.frames if found else None,
        "width": found.width if found else None,
        "height": found.height if found else None,
        "media_s": found.frames / FPS if found else None,
    }


def _hash(path: Path, name: str, findings: list[Finding]) -> str | None:
    try:
        return sha256_file(path)
    except OSError as error:
        findings.append(Finding(name, "fail", f"cannot be read: {error.strerror}"))
        return None


def _adapter(subject: Subject, findings: list[Finding]) -> Adapter | None:
    if subject.adapter is None:
        status: Status = "fail" if subject.task == HESITATION else "ok"
        findings.append(Finding("adapter", status, "the manifest names no adapter"))
        return None
    if not subject.adapter.is_file():
        return None
    try:
        adapter = read_adapter(subject.adapter)
    except HfdError as error:
        message = f"{error.field}: {error.problem}" if error.field else error.problem
        findings.append(Finding("adapter", "fail", message))
        return None
    findings.append(Finding("adapter", "ok", "readable"))
    return adapter


def _decode(path: Path, findings: list[Finding]) -> Decoded | None:
    try:
        found = decode(path)
    except HfdError as error:
        findings.append(Finding("readable", "fail", error.problem))
        return None
    evidence = {"pictures": found.frames, "samples": len(found.pcm), "errors": found.errors[:5]}
    if found.errors:
        finding = Finding("readable", "fail", found.errors[0], evidence)
    elif not found.frames or not len(found.pcm):
        missing = "sound" if found.frames else "video"
        finding = Finding("readable", "fail", f"has no {missing}", evidence)
    else:
        finding = Finding("readable", "ok", "decodes whole, without an error", evidence)
    findings.append(finding)
    return found


def _format(found: Decoded) -> Finding:
    evidence = {"video": found.video, "audio": found.audio, "streams": list(found.streams)}
    if found.streams != (1, 1):
        return Finding("format", "fail", "not exactly one video and one sound stream", evidence)
    if (found.audio.get("rate"), found.audio.get("channels")) != (SAMPLE_RATE, 1):
        return Finding("format", "fail", "sound is not 16 kHz mono", evidence)
    if (found.video["codec"], found.video["pix_fmt"]) != ("h264", "yuv420p"):
        return Finding("format", "suspect", "video is not H.264 yuv420p", evidence)
    return Finding("format", "ok", "H.264 yuv420p, 16 kHz mono", evidence)


def _grid(found: Decoded) -> Finding:
    if found.off_grid:
        return Finding("grid", "fail", found.off_grid)
    return Finding("grid", "ok", "video frame k lies at k/5 s")


def _sound_times(found: Decoded) -> Finding:
    """Sound lies where its time stamps say, up to a limit; beyond it the file is not readable."""
    evidence = {"holes": [[hole.at, hole.samples] for hole in found.holes]}
    if not found.holes:
        return Finding("sound_times", "ok", "the sound has no holes", evidence)
    first = found.holes[0]
    kind = "a hole" if first.samples > 0 else "an overlap"
    more = f", and {len(found.holes) - 1} more" if len(found.holes) > 1 else ""
    message = (
        f"{kind} of {abs(first.samples) / SAMPLE_RATE:.3f} s in the sound at "
        f"{first.at / SAMPLE_RATE:.3f} s{more}: placed as the time stamps say"
    )
    return Finding("sound_times", "suspect", message, evidence)


def _length(found: Decoded) -> Finding:
    extra = len(found.pcm) - found.frames * VIDEO_FRAME_SAMPLES
    evidence = {"extra_samples": extra, "codec": found.audio.get("codec")}
    if extra == 0 or (not found.lossless and 0 < extra <= _AAC_EXTRA):
        return Finding("length", "ok", "sound and video have one length", evidence)
    status: Status = "suspect" if abs(extra) <= VIDEO_FRAME_SAMPLES else "fail"
    message = f"sound is {extra / SAMPLE_RATE:+.3f} s longer than the video"
    return Finding("length", status, message, evidence)


def _duration(found: Decoded, subject: Subject) -> Finding:
    media_s = found.frames / FPS
    apart = subject.duration_seconds - media_s
    evidence = {"duration_seconds": subject.duration_seconds, "media_s": media_s}
    if abs(apart) <= _DURATION_S:
        return Finding("duration", "ok", "the manifest has the file's length", evidence)
    status: Status = "suspect" if abs(apart) <= _ROUNDED_S else "fail"
    return Finding("duration", status, f"the manifest is {apart:+.3f} s off the file", evidence)


def _denied(video_sha: str | None, denied: Set[str]) -> Finding:
    if video_sha in denied:
        return Finding("deny_list", "fail", "this video is on the deny list: an old version")
    return Finding("deny_list", "ok", f"not among {len(denied)} denied videos")


def _record(adapter: Adapter, video_sha: str | None) -> Finding:
    recorded = lookup(adapter.row, "compiled.video_sha256")
    evidence = {"recorded": recorded, "found": video_sha}
    if recorded != video_sha:
        return Finding("record", "fail", "the adapter was compiled with another video", evidence)
    return Finding("record", "ok", "the adapter was compiled with this video", evidence)


def _to_length(pcm: np.ndarray, samples: int) -> np.ndarray:
    return np.pad(pcm[:samples], (0, max(0, samples - len(pcm))))
