"""Run a few samples again with their sound changed only after T, and compare what was said before.

For each sample: a run as it is, a second one to see whether the model is deterministic, and one
whose sound after T is another. T lies in the middle of what the model said in the first run. Runs
in the model's own environment, like infer_shard.
"""

from __future__ import annotations

import argparse
import shutil
from dataclasses import replace
from pathlib import Path

import av
import numpy as np

from hfd.data.manifest import Sample, read_manifest
from hfd.errors import HfdError, run_cli
from hfd.files import write_json
from hfd.judge.probe import compare, overall
from hfd.judge.reference import decode_sound
from hfd.judge.trace import Trace, read_trace
from hfd.judge.verdict import Verdict, unknown
from hfd.media_time import SAMPLE_RATE
from hfd.models.base import DuplexModel
from hfd.models.registry import create_model
from hfd.stream.run import Run
from hfd.stream.session import run_sample
from hfd.work.spec import ModelSpec


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    spec = ModelSpec.from_json(args.spec)
    samples = [s for s in read_manifest(args.manifest, args.root) if s.adapter is not None]
    chosen = sorted(samples, key=lambda s: s.task != "hesitation")[: args.samples]
    if not chosen:
        raise HfdError("has no sample with an adapter to probe", file=args.manifest)
    model = create_model(spec.module, spec.settings)
    identity = model.load()
    run = Run(spec.name, spec.module, spec.settings, spec.seed, identity)
    try:
        verdicts = [(s.sample_id, probe(model, run, s, args.scratch)) for s in chosen]
    finally:
        model.unload()
    for sample_id, verdict in verdicts:
        print(f"{sample_id}: {verdict.status}: {verdict.reason}")
    answer = overall(verdicts).as_dict()
    answer["evidence"]["by_sample"] = {name: v.as_dict() for name, v in verdicts}
    write_json(args.out, answer)
    return 0


def probe(model: DuplexModel, run: Run, sample: Sample, scratch: Path) -> Verdict:
    """The three runs of one sample, compared."""
    sound = decode_sound(sample.video)
    folder = scratch / sample.sample_id
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    kept = _run(model, run, sample, folder / "kept", sound)
    end = middle(kept)
    if end is None:
        return unknown("the model said nothing while the file played")
    again = _run(model, run, sample, folder / "again", sound)
    changed = _run(model, run, sample, folder / "changed", changed_after(sound, end))
    return compare(kept, again, changed, end)


def middle(trace: Trace) -> float | None:
    """Media second at which the unit ends that the middle output depends on; T of the probe."""
    due = {line["unit"]: line["due"] for _, line in trace.of("input")}
    last = max(due, default=-1)
    units = [line["input_seq"] for _, line in trace.of("text", "audio") if line["input_seq"] < last]
    return due[units[len(units) // 2]] if units else None


def changed_after(sound: np.ndarray, end: float) -> np.ndarray:
    """The sound with everything from `end` on replaced: silence by speech, speech by silence."""
    at = round(end * SAMPLE_RATE)
    rest = sound[at:]
    changed = sound.copy()
    if np.abs(rest.astype(np.int32)).max(initial=0) > 300:
        changed[at:] = 0
    else:
        changed[at:] = np.resize(sound[:at][::-1], len(rest))
    return changed


def _run(model: DuplexModel, run: Run, sample: Sample, folder: Path, sound: np.ndarray) -> Trace:
    video = folder.with_suffix(".mp4")
    with_sound(sample.video, sound, video)
    folder.mkdir()
    run_sample(model, run, replace(sample, video=video), folder, fingerprint="prefix probe")
    return read_trace(folder / "trace.jsonl.gz")


def with_sound(source: Path, sound: np.ndarray, target: Path) -> None:
    """Copy a compiled file's pictures bit for bit and give it another sound (FLAC, lossless)."""
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
    parser.add_argument("--spec", required=True, help="the model's spec as one line of JSON")
    parser.add_argument("--manifest", type=Path, default=Path("data/manifest.jsonl"))
    parser.add_argument("--root", type=Path, default=Path(), help="folder of the manifest's paths")
    parser.add_argument("--samples", type=int, default=3, help="how many samples; default 3")
    parser.add_argument("--scratch", type=Path, required=True, help="folder for files and runs")
    parser.add_argument("--out", type=Path, required=True, help="the verdict, as JSON")
    return parser


if __name__ == "__main__":
    run_cli(main)
