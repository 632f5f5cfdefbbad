"""A1: was exactly the delivered file fed?"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np

from hfd.judge.findings import PROVENANCE
from hfd.judge.folder import Folder
from hfd.judge.reference import Reference
from hfd.judge.rules.rule import Rule, SampleCase
from hfd.judge.verdict import Verdict, failed, passed, unknown
from hfd.media_time import SAMPLE_RATE, VIDEO_FRAME_SAMPLES


def of_sample(case: SampleCase) -> Verdict:
    folder, reference = case.folder, case.reference
    stated = folder.provenance.value.get("input", {})
    video = stated.get("video_sha256")
    if video in case.policy.deny_sha256:
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
    units = folder.trace.of("input")
    for number, line in units:
        if line["start"] >= len(pcm):
            break  # input beyond the file's end is A2's business
        part = pcm[line["start"] : line["start"] + line["valid_samples"]]
        other = None
        if hashlib.sha256(part.tobytes()).hexdigest() != line["pcm_sha"]:
            other = "the sound of unit {} is not the file's sound"
        elif _frames_sha(line["frames"], reference.frames) != line["frames_sha"]:
            other = "the video frames of unit {} are not the file's"
        if other:
            at = line["start"] / SAMPLE_RATE
            return failed(other.format(line["unit"]), line=number, start_s=at)
    told = _check_taken(folder)
    if told:
        return failed(told)
    taken = sum(len(line.get("taken", ())) for _, line in units)
    return passed(
        f"files, sound and video frames of all {len(units)} units are those of the manifest; "
        f"the model took {taken} frames by its rule"
    )


def _frames_sha(frames: Sequence[Any], digests: Sequence[bytes]) -> str | None:
    if not all(isinstance(index, int) and 0 <= index < len(digests) for index in frames):
        return None
    return hashlib.sha256(b"".join(digests[index] for index in frames)).hexdigest()


def _check_taken(folder: Folder) -> str | None:
    """Whether the frames that the model took are those that its own rule chooses."""
    rule = folder.provenance.value.get("contract", {}).get("frame_rule")
    units = [line for _, line in folder.trace.of("input")]
    if any("taken" not in line for line in units):
        return None  # an older trace
    try:
        expected = taken_by_rule(rule, units)
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return "the frame rule in the contract cannot be read"
    for line, frames in zip(units, expected, strict=True):
        if line["taken"] != frames:
            shown = f"{line['taken']} of unit {line['unit']}, its rule chooses {frames}"
            return f"the model took the video frames {shown}"
    return None


def taken_by_rule(
    rule: Mapping[str, Any] | None, units: Sequence[Mapping[str, Any]]
) -> list[list[int]]:
    """The frames that a rule (docs/formats.md) chooses, for each unit in order."""
    if rule is None:
        return [[] for _ in units]
    if rule["period_samples"] is None:
        return [list(line["frames"]) for line in units]
    period, offsets = Fraction(rule["period_samples"]), rule["offsets_samples"]
    if period < 1 or len(offsets) > MOST_OFFSETS:
        raise ValueError(period)
    last = -1
    found = []
    for line in units:
        start = line["start"]
        end = start + (line["samples"] if rule["again"] else line["valid_samples"])
        newest = line["frames"][-1] if line["frames"] else (start - 1) // VIDEO_FRAME_SAMPLES
        taken = []
        turn = max(0, floor((start - max(offsets)) / period))
        while turn * period < end:
            for slot in (turn * period + offset for offset in offsets):
                frame = min(newest, floor(slot / VIDEO_FRAME_SAMPLES))
                if start <= slot < end and (rule["again"] or frame > last):
                    taken.append(frame)
                    last = frame
            turn += 1
        found.append(taken)
    return found


MOST_OFFSETS = 100


def _fitted(pcm: np.ndarray, samples: int) -> np.ndarray:
    return np.pad(pcm[:samples], (0, max(0, samples - len(pcm))))


RULE = Rule(
    "A1",
    "Input identity",
    "Was exactly the delivered file fed, and no old version of it?",
    "video and adapter are the manifest's, the sound and the video frames of every unit are the "
    "file's own, decoded here; the frames that the model took are those of its contract's rule; "
    "the video is not on the deny list",
    of_sample,
)
