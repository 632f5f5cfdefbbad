"""A1: was exactly the delivered file fed?"""

from __future__ import annotations

import hashlib

import numpy as np

from hfd.judge.findings import PROVENANCE
from hfd.judge.folder import Folder
from hfd.judge.reference import Reference
from hfd.judge.rules.rule import Rule, SampleCase
from hfd.judge.verdict import Verdict, failed, passed, unknown
from hfd.media_time import SAMPLE_RATE


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


RULE = Rule(
    "A1",
    "Input identity",
    "Was exactly the delivered file fed, and no old version of it?",
    "video and adapter are the manifest's, the sound of every unit and the pictures are the "
    "file's own, the video is not on the deny list",
    of_sample,
)
