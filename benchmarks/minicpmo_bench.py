"""MiniCPM-o 4.5 on this machine's GPU: upstream's plain loop and the captured one, side by side.

Full size, random weights, the model's public code (HFD_PEERS: a folder of clones). A random model
hardly ever listens, so listening seconds are forced; what speaks, speaks on. Prints one JSON object
a line:

* equality: float32, so that rounding decides nothing: tokens, codes and samples of both loops;
* a file of a minute with 40 % speech: real-time factor, and what its seconds cost;
* listening and speaking seconds after that minute.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tests.tiny import minicpmo as tiny
from tests.tiny.minicpmo import RandomMiniCpmO, random_model

from hfd.duplex.events import Audio, Event, Metric
from hfd.duplex.model import SampleInfo
from hfd.duplex.units import Unit
from hfd.models.minicpmo import loader
from hfd.models.minicpmo.model import POSITIONS
from minicpmo_model import full_config, write_folder

MINUTE_S = 60
MORE_S = 10


@dataclass(frozen=True)
class Picture:
    """A frame that needs no decoding."""

    index: int
    rgb: np.ndarray


def speaks(second: int) -> bool:
    """Six seconds of fifteen."""
    return 6 <= second % 15 < 12


def make_units(count: int) -> list[Unit]:
    random = np.random.default_rng(0)
    units = []
    for index in range(count):
        frames = tuple(
            Picture(number, random.integers(0, 256, (270, 480, 3), dtype=np.uint8))
            for number in range(5 * index, 5 * index + 5)
        )
        pcm = (0.1 * random.standard_normal(16_000)).astype(np.float32)
        last = index == count - 1
        units.append(Unit(index, 16_000 * index, pcm, frames, 16_000, last, frames))  # type: ignore[arg-type]
    return units


@dataclass
class Outcome:
    """One run: wall seconds of each second of media, and everything that came out."""

    costs: list[float]
    open_s: float
    finish_s: float
    events: list[Event]
    ids: list[int]
    codes: list[int]

    @property
    def pcm(self) -> np.ndarray:
        return np.concatenate([e.pcm for e in self.events if isinstance(e, Audio)])

    def mean(self, name: str, part: str, seconds: range, speaking: bool) -> float:
        """Mean of one part's cost over the listening or speaking seconds."""
        found = [dict(e.values) for e in self.events if isinstance(e, Metric) and e.name == name]
        chosen = [found[n][part] for n in seconds if speaks(n) is speaking]
        return round(statistics.mean(chosen), 4)


def run(model: RandomMiniCpmO, units: list[Unit], always: bool = False) -> Outcome:
    duplex = model._parts.duplex
    codes: list[int] = []
    generate = duplex.model.tts.generate_chunk

    def noting(*args: Any, **more: Any) -> Any:
        made = generate(*args, **more)
        codes.extend(made[0].flatten().tolist())
        return made

    duplex.model.tts.generate_chunk = noting
    events: list[Event] = []
    began = time.perf_counter()
    model.open(SampleInfo("one", float(len(units)), 480, 270, 7, Path("unused")), events.append)
    torch.cuda.synchronize()
    open_s = time.perf_counter() - began
    costs = []
    for unit in units:
        duplex.force_listen_count = 0 if always or speaks(unit.index) else 10**9
        began = time.perf_counter()
        model.push(unit)
        torch.cuda.synchronize()
        costs.append(time.perf_counter() - began)
    began = time.perf_counter()
    model.finish()
    torch.cuda.synchronize()
    finish_s = time.perf_counter() - began
    del duplex.model.tts.generate_chunk
    return Outcome(costs, open_s, finish_s, events, list(duplex.total_ids), codes)


def report(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


def agreement(one: list[int], other: list[int]) -> dict[str, Any]:
    same = sum(a == b for a, b in zip(one, other, strict=False))
    first = next((n for n, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), None)
    return {"count": [len(one), len(other)], "equal": same, "first_difference": first}


def compare(plain: Outcome, faster: Outcome) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "tokens": agreement(plain.ids, faster.ids),
        "codes": agreement(plain.codes, faster.codes),
    }
    one, other = plain.pcm, faster.pcm
    if len(one) == len(other):
        facts["largest_difference_of_samples"] = float(np.abs(one - other).max())
        facts["largest_sample"] = float(np.abs(one).max())
    return facts


def summary(kind: str, outcome: Outcome) -> dict[str, Any]:
    minute, later = range(MINUTE_S), range(MINUTE_S, MINUTE_S + MORE_S)
    total = outcome.open_s + sum(outcome.costs[:MINUTE_S]) + outcome.finish_s
    answer = ("llm_s", "tts_s", "token2wav_s", "all_s")
    parts = ("vision_process", "vision_embed", "vision_feed", "audio_process", "audio_embed")
    listen = [f"{part}_s" for part in (*parts, "audio_feed", "all")]
    at_minute = {
        name: round(statistics.mean(outcome.costs[n] for n in later if speaks(n) is speaking), 4)
        for name, speaking in (("listening_s", False), ("speaking_s", True))
    }
    return {
        "loop": kind,
        "rtf_of_the_minute": round(total / MINUTE_S, 4),
        "open_s": round(outcome.open_s, 3),
        "after_the_minute": at_minute,
        "slowest_second_s": round(max(outcome.costs), 3),
        "parts_listening": {p: outcome.mean("listen", p, later, False) for p in listen},
        "parts_speaking": {p: outcome.mean("answer", p, later, True) for p in answer},
        "parts_of_the_minute": {p: outcome.mean("answer", p, minute, True) for p in answer},
    }


def measure(snapshot: Any, device: str, kinds: list[str]) -> None:
    """The minute and what follows, in bfloat16, plain first: the model is taken over after it."""
    model = random_model(snapshot.folder, torch.bfloat16, device)
    units, outcomes = make_units(MINUTE_S + MORE_S), {}
    for kind in kinds:
        runner = RandomMiniCpmO({"device": device, "acceleration": kind}, snapshot, model)
        began = time.perf_counter()
        identity = runner.load()
        report(loop=kind, load_s=round(time.perf_counter() - began, 2), **_kept(identity))
        run(runner, units[:9])  # what is slow once
        torch.cuda.reset_peak_memory_stats()
        outcomes[kind] = run(runner, units)
        peak = torch.cuda.max_memory_allocated() / 1e9
        report(**summary(kind, outcomes[kind]), peak_memory_gb=round(peak, 2))
    if len(outcomes) == 2:
        report(bfloat16=compare(*outcomes.values()))


def _kept(identity: Any) -> dict[str, Any]:
    names = ("acceleration", "captured", "captured_vocoder", "drawing", "warm_up_s")
    return {n: identity.detail[n] for n in names if n in identity.detail}


def check_equality(snapshot: Any, device: str, seconds: int) -> None:
    """Both loops in float32 over a few speaking seconds."""
    model = random_model(snapshot.folder, torch.float32, device)
    units, outcomes = make_units(seconds), []
    for kind in ("eager", "graphs"):
        settings = {"device": device, "acceleration": kind, "dtype": "float32"}
        runner = RandomMiniCpmO(settings, snapshot, model)
        runner.load()
        outcomes += [run(runner, units, always=True) for _ in range(2)]
    plain, again, faster, repeated = outcomes
    report(float32=compare(plain, faster), plain_twice=compare(plain, again))
    report(captured_twice=compare(faster, repeated))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path, default=os.environ.get("HFD_PEERS", "."))
    parser.add_argument("--equal-seconds", type=int, default=6)
    parser.add_argument("--loops", nargs="+", default=["eager", "graphs"])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--tiny", action="store_true", help="tiny shapes: does this file run")
    args = parser.parse_args()
    loader.use_own_module_cache()
    shapes = full_config()
    if args.tiny:
        shapes = tiny.config() | {"max_position_embeddings": POSITIONS}
    with tempfile.TemporaryDirectory() as folder:
        snapshot = write_folder(Path(folder) / "MiniCPM-o-random", args.peers, shapes)
        gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
        report(gpu=gpu, torch=torch.__version__, tiny=args.tiny)
        if args.equal_seconds:
            check_equality(snapshot, args.device, args.equal_seconds)
            gc.collect()
            torch.cuda.empty_cache()
        measure(snapshot, args.device, args.loops)


if __name__ == "__main__":
    main()
