"""Run a few samples again with a part of their sound changed, and compare what was said.

The samples are drawn from a hash of the delivered results and a nonce of the auditor's. For each: a
run as it is, which is also compared with what was delivered, a second one to see whether the model
is deterministic, and one with another sound. ``prefix`` changes it only after T, in the middle of
what the model said in the first run; ``needle`` only before T, up to the end of the first of
several utterances (or half of a single one). Runs in the model's own environment, like infer.
"""

from __future__ import annotations

import argparse
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import av
import numpy as np

from hfd.data.adapter import read_adapter
from hfd.data.compiled_tracks import read_sound
from hfd.data.manifest import Sample, read_manifest
from hfd.duplex.model import DuplexModel
from hfd.errors import HfdError, run_cli
from hfd.files import read_json, write_json
from hfd.jobs.spec import ModelSpec
from hfd.jobs.worker import make_model
from hfd.judge.probe import (
    drawn,
    needle_reach,
    overall,
    prefix_invariance,
    read_tails,
    rerun_of,
    tails_digest,
)
from hfd.judge.trace import Trace, read_trace
from hfd.judge.verdict import FAIL, Verdict, unknown
from hfd.media_time import SAMPLE_RATE
from hfd.stream.provenance import code_version, environment
from hfd.stream.run import Run
from hfd.stream.session import run_sample

AUDIBLE = 300
"""int16; a part of the file with less is silence."""


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    spec = ModelSpec.from_environment(args.model)
    samples = [s for s in read_manifest(args.manifest, args.root) if s.adapter is not None]
    tails = read_tails(args.results)
    digest = tails_digest(tails)
    ids = [s.sample_id for s in samples if s.sample_id in tails]
    if not ids:
        raise HfdError(
            f"has no sample with an adapter whose result is in {args.results}",
            file=args.manifest,
            remedy="Run the model first: a probe belongs to results",
        )
    names = drawn(ids, digest, args.nonce, args.samples)
    chosen = [next(s for s in samples if s.sample_id == name) for name in names]
    model = make_model(spec)
    identity = model.load()
    bench = Bench(model, Run(spec.name, spec.module, spec.settings, spec.seed, identity))
    try:
        verdicts = [
            (s.sample_id, probed(args.kind, bench, s, args.scratch / s.sample_id, args.results))
            for s in chosen
        ]
    finally:
        model.unload()
    for sample_id, verdict in verdicts:
        print(f"{sample_id}: {verdict.status}: {verdict.reason}")
    answer = overall(verdicts).as_dict()
    answer["evidence"]["by_sample"] = {name: v.as_dict() for name, v in verdicts}
    answer["bound"] = {
        "tails_sha256": digest,
        "nonce": args.nonce,
        "from": ids,
        "samples": names,
        "weights": identity.weights,
    }
    write_json(args.out, answer)
    return 0


def probed(kind: str, bench: Bench, sample: Sample, scratch: Path, results: Path) -> Verdict:
    """The probe's answer for one sample, and whether its unchanged run is the delivered one."""
    shutil.rmtree(scratch, ignore_errors=True)
    verdict = KINDS[kind](bench, sample, scratch)
    kept, again = (scratch / name / "trace.jsonl.gz" for name in ("kept", "again"))
    if not kept.is_file():
        return verdict
    folder = results / sample.sample_id
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


@dataclass(frozen=True)
class Bench:
    """A loaded model, and what its runs share."""

    model: DuplexModel
    run: Run

    def trace(self, sample: Sample, folder: Path, sound: np.ndarray) -> Trace:
        """The trace of one run of the sample with this sound (int16 at 16 kHz)."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        video = folder.with_suffix(".mp4")
        with_sound(sample.video, sound, video)
        run_sample(self.model, self.run, replace(sample, video=video), folder, fingerprint="probe")
        return read_trace(folder / "trace.jsonl.gz")


def prefix(bench: Bench, sample: Sample, scratch: Path) -> Verdict:
    """A6: the sound changed only after T."""
    sound = read_sound(sample.video)
    kept = bench.trace(sample, scratch / "kept", sound)
    end = middle(kept)
    if end is None:
        return unknown("the model said nothing while the file played")
    again = bench.trace(sample, scratch / "again", sound)
    changed = bench.trace(sample, scratch / "changed", changed_between(sound, end, None))
    return prefix_invariance(kept, again, changed, end)


def needle(bench: Bench, sample: Sample, scratch: Path) -> Verdict:
    """A12: the sound changed only before T."""
    adapter = read_adapter(sample.adapter) if sample.adapter else None
    events = sorted(adapter.events if adapter else (), key=lambda event: event.start)
    if not events:
        return unknown("the adapter does not say when the user speaks")
    first = events[0]
    end = first.end if len(events) > 1 else (first.start + first.end) / 2
    sound = read_sound(sample.video)
    kept = bench.trace(sample, scratch / "kept", sound)
    again = bench.trace(sample, scratch / "again", sound)
    changed = bench.trace(sample, scratch / "changed", changed_between(sound, 0.0, end))
    return needle_reach(kept, again, changed, end, max(event.end for event in events))


KINDS = {"prefix": prefix, "needle": needle}


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


def with_sound(source: Path, sound: np.ndarray, target: Path) -> None:
    """Copy a compiled file's frames bit for bit and give it another sound (FLAC, lossless)."""
    with (
        av.open(f"file:{source.absolute()}") as old,
        av.open(f"file:{target.absolute()}", "w", format="mp4", options={"strict": "-2"}) as new,
    ):
        pictures = new.add_stream_from_template(old.streams.video[0])
        voice = new.add_stream("flac", rate=SAMPLE_RATE, layout="mono")
        for packet in old.demux(video=0):
            if packet.dts is not None:
                packet.stream = pictures
                new.mux(packet)
        frame = av.AudioFrame.from_ndarray(sound.reshape(1, -1), format="s16", layout="mono")
        frame.sample_rate, frame.pts = SAMPLE_RATE, 0
        queue = av.AudioFifo()
        queue.write(frame)
        while piece := queue.read(4096, partial=True):
            new.mux(voice.encode(piece))
        # FLAC's last packet only repeats its header: it has no time and cannot be muxed.
        new.mux([packet for packet in voice.encode(None) if (packet.dts or 0) > 0])


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--model", required=True, help="its name in $HFD_CONFIG")
    parser.add_argument("--manifest", type=Path, default=Path("data/manifest.jsonl"))
    parser.add_argument("--root", type=Path, default=Path(), help="folder of the manifest's paths")
    parser.add_argument("--samples", type=int, default=3, help="how many samples; default 3")
    parser.add_argument("--results", type=Path, required=True, help="the results it belongs to")
    parser.add_argument("--nonce", default="", help="the auditor's word for drawing the samples")
    parser.add_argument("--scratch", type=Path, required=True, help="folder for files and runs")
    parser.add_argument("--out", type=Path, required=True, help="the verdict, as JSON")
    return parser


if __name__ == "__main__":
    run_cli(main)
