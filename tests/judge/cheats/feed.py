"""Cheats with what the model was given, and with how much of it it kept."""

from __future__ import annotations

import copy
import hashlib
from pathlib import Path

from hfd.judge.identity_check import fingerprint
from tests.judge.cheats.common import each, one


def doubled_padding(results: Path) -> None:
    for forgery in each(results):
        done = forgery.of("input_done")[0]
        at = forgery.lines.index(done)
        last = copy.deepcopy(forgery.of("input")[-1])
        unit = last["samples"]
        more = []
        for n in range(1, 48_000 // unit + 1):
            start = last["start"] + n * unit
            more.append(
                copy.deepcopy(last)
                | {
                    "unit": last["unit"] + n,
                    "start": start,
                    "valid_samples": unit,
                    "frames": [],
                    "due": (start + unit) / 16000,
                    "t": round(max(last["t"], (start + unit) / 16000), 6),
                }
            )
        forgery.lines[at:at] = more
        for line in forgery.lines[at + len(more) :]:
            line["t"] = round(max(line["t"], more[-1]["t"] + 0.000001), 6)
        forgery.queue()
        forgery.seal()


def skipped_unit(results: Path) -> None:
    forgery = one(results)
    forgery.drop([forgery.of("input")[7]])
    forgery.seal()


def skipped_pictures(results: Path) -> None:
    forgery = one(results)
    nothing = hashlib.sha256(b"").hexdigest()
    for line in forgery.of("input")[::2]:
        line |= {"frames": [], "taken": [], "frames_sha": nothing}
    forgery.seal()


def other_video(results: Path) -> None:
    forgery = one(results)
    forgery.provenance["input"]["video_sha256"] = "c" * 64
    forgery.provenance["fingerprint"] = fingerprint(forgery.provenance)
    forgery.write_documents()


def other_sound_fed(results: Path) -> None:
    forgery = one(results)
    for line in forgery.of("input")[20:]:
        line["pcm_sha"] = "d" * 64
    forgery.seal()


def other_pictures_fed(results: Path) -> None:
    """Black frames in the place of the file's: only their hashes tell."""
    for line in (forgery := one(results)).of("input")[10:]:
        if line["frames"]:
            line["frames_sha"] = "e" * 64
    forgery.seal()


def fewer_pictures_taken(results: Path) -> None:
    """One frame a second where the contract's rule takes every frame."""
    for line in (forgery := one(results)).of("input"):
        line["taken"] = [frame for frame in line["taken"] if frame % 5 == 0]
    forgery.seal()


def cropped_context(results: Path) -> None:
    forgery = one(results)
    for n, line in enumerate(forgery.of("metric")):
        line["values"]["context_tokens"] = 3 * (n % 40)
    forgery.seal()
