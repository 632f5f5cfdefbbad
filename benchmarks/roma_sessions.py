"""Samples per GPU-hour with several sessions in one worker of ROMA, and whether they say the same.

Random weights in full size; 6 s of every 18 s are spoken. The videos of a working folder go through
the real worker, N at a time; every sample's text, codes, sound and speak probabilities are compared
with those of a run alone. ``--tiny`` runs the same on a tiny snapshot, to see that it works.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import gc
import hashlib
import json
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
import roma_kept
from hfd.data.manifest import Sample, read_manifest
from hfd.errors import HfdError, run_cli
from hfd.files import read_json
from hfd.jobs.spec import ModelSpec
from hfd.jobs.store import Store
from hfd.jobs.worker import Shard, run_shard
from hfd.judge.reruns import outputs_of
from hfd.judge.trace import read_trace
from hfd.models.roma.unit import frame_grid
from hfd.stream.reader import probe
from roma_files import forced

NAME = "roma_sessions"
ROUNDS = 3
"""Samples of a run for each session; alone, as many as are compared."""


def run(
    spec: ModelSpec, samples: Sequence[Sample], work: Path, sessions: int
) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """All samples through the real worker from an empty store.

    Returns:
        What it took, and of each sample the digests of what it said.
    """
    store = Store(work, NAME)
    shutil.rmtree(store.folder, ignore_errors=True)
    store.folder.mkdir(parents=True)
    if torch.cuda.is_available():
        gc.collect()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    began = time.perf_counter()
    tally = run_shard(
        replace(spec, sessions=sessions),
        Shard(f"{sessions}", samples),
        store,
        lambda text: print(f"  {text}", file=sys.stderr, flush=True),
    )
    took = time.perf_counter() - began
    names = [sample.sample_id for sample in samples if tally.ended[sample.sample_id] == "done"]
    codes = roma_kept.digests_of(names)
    said, beside, compute = {}, [], 0.0
    for name in names:
        folder = store.entry(name)
        outputs, trace = outputs_of(folder), read_trace(folder / "trace.jsonl.gz")
        heads = [
            line["values"]["speak_probability"]
            for _, line in trace.of("metric")
            if line["name"] == "listen"
        ]
        said[name] = {
            "text": outputs.text,
            "codes": codes[name],
            "sound": outputs.sound,
            "heads": hashlib.sha256(repr(heads).encode()).hexdigest(),
        }
        beside.append(read_json(folder / "provenance.json").get("shared", {}).get("mean_beside", 0))
        compute += read_json(folder / "result.json")["rtf"]["compute_s"]
    row = {
        "sessions": sessions,
        "samples": tally.computed,
        "failed": len(samples) - tally.computed,
        "worker_s": round(took, 2),
        "busy_s": round(tally.busy_s, 2),
        "samples_per_hour": round(3600 * tally.computed / tally.busy_s, 1),
        "media_per_s": round(tally.media_s / tally.busy_s, 2),
        "compute_per_media_s": round(compute / tally.media_s, 3),
        "mean_beside": round(sum(beside) / len(beside), 2),
        **memory(),
    }
    return row, said


def memory() -> dict[str, float]:
    if not torch.cuda.is_available():
        return {}
    return {
        "allocated_gb": round(torch.cuda.memory_allocated() / 1e9, 1),
        "peak_reserved_gb": round(torch.cuda.max_memory_reserved() / 1e9, 1),
    }


def equal(said: dict[str, dict[str, Any]], alone: dict[str, dict[str, Any]]) -> dict[str, str]:
    """How many of the samples that ran alone, too, said the same, by kind of output."""
    shared = [name for name in said if name in alone]
    kinds = next(iter(alone.values()), {})
    return {
        kind: f"{sum(said[n][kind] == alone[n][kind] for n in shared)}/{len(shared)}"
        for kind in kinds
    }


def copies(samples: Sequence[Sample], count: int) -> list[Sample]:
    """`count` samples: the same files again and again, each with an id and so a seed of its own."""
    return [
        replace(samples[n % len(samples)], sample_id=f"{samples[n % len(samples)].sample_id} {n}")
        for n in range(count)
    ]


def measure(options: argparse.Namespace, spec: ModelSpec) -> Iterator[dict[str, Any]]:
    """One row for each number of sessions, then one with frames of a size that is new to them."""
    given = {s.sample_id: s for s in read_manifest("data/manifest.jsonl", options.work)}
    chosen = [given[name] for name in options.only] if options.only else list(given.values())
    for sample in chosen:
        info = probe(sample.video)
        roma_kept.GRIDS.append(frame_grid(info.width, info.height))
    run(spec, copies(chosen, 1), options.work, 1)  # loads and warms up
    alone: dict[str, dict[str, Any]] = {}
    for sessions in options.sessions:
        faulthandler.dump_traceback_later(options.limit_s, exit=True)
        count = 2 * len(chosen) if sessions == 1 else ROUNDS * sessions
        row, said = run(spec, copies(chosen, max(count, len(chosen))), options.work, sessions)
        alone = alone or said
        yield row | {"equal": equal(said, alone)}
        faulthandler.cancel_dump_traceback_later()
    if options.new_size:
        faulthandler.dump_traceback_later(options.limit_s, exit=True)
        sized = [given[options.new_size]]
        sessions = max(options.sessions)
        row, said = run(spec, copies(sized, sessions), options.work, sessions)
        _, own = run(spec, copies(sized, 2), options.work, 1)
        faulthandler.cancel_dump_traceback_later()
        yield row | {"equal": equal(said, own), "new_size": True}


def table(rows: Sequence[dict[str, Any]]) -> str:
    lines = [
        "| sessions | samples | samples per GPU-hour | to 1 | media s per s | of each | beside |"
        " GB allocated, reserved | equal to alone: text, codes, sound, heads |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    base = rows[0]["samples_per_hour"] if rows else 1
    for row in rows:
        new = ", a new frame size" if row.get("new_size") else ""
        gigabytes = f"{row.get('allocated_gb', '–')}, {row.get('peak_reserved_gb', '–')}"
        lines.append(
            f"| {row['sessions']}{new} | {row['samples']} | {row['samples_per_hour']:.0f} |"
            f" {row['samples_per_hour'] / base:.2f} | {row['media_per_s']} |"
            f" {row['compute_per_media_s']} | {row['mean_beside']} | {gigabytes} |"
            f" {', '.join(row['equal'].values())} |"
        )
    return "\n".join(lines)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--work", type=Path, default=Path(".demo"), help="has data/manifest.jsonl")
    parser.add_argument("--only", nargs="*", default=[], metavar="ID", help="samples; default all")
    parser.add_argument("--new-size", metavar="ID", help="a sample of another frame size")
    parser.add_argument("--sessions", type=int, nargs="+", default=[1, 4, 8])
    parser.add_argument("--tiny", type=Path, metavar="SNAPSHOT", help="a tiny snapshot instead")
    parser.add_argument("--limit-s", type=float, default=600, help="for one row; then stacks, exit")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/roma_sessions.json"))
    options = parser.parse_args(argv)
    if options.tiny:
        torch.set_num_threads(1)
        small = {"model_path": str(options.tiny.resolve()), "device": "cpu", "num_steps": 2}
        settings = {**small, **forced("graphs"), "max_codes": 60}
    elif torch.cuda.is_available():
        settings = {"model_path": roma_kept.RANDOM, **forced("graphs")}
    else:
        raise HfdError("there is no GPU to measure", remedy="Use a GPU machine, or --tiny")
    settings["max_media_s"] = 60.0
    here = str(Path(__file__).resolve().parent)
    spec = ModelSpec(NAME, "roma_kept", settings, module_path=here)
    options.work = options.work.resolve()
    roma_kept.note_codes()
    rows: list[dict[str, Any]] = []
    out = options.out.resolve()
    try:
        with contextlib.chdir(options.work):
            for row in measure(options, spec):
                rows.append(row)
                print(json.dumps(row, ensure_ascii=False), flush=True)
                out.write_text(json.dumps(rows, indent=1))
    finally:
        print(table(rows))
    return 0


if __name__ == "__main__":
    run_cli(main)
