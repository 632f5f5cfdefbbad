"""MiniCPM-o 4.5 on this machine's GPU: upstream's plain loop and the captured one, side by side.

Full size, random weights, the model's public code (HFD_PEERS: a folder of clones). A random model
hardly ever listens, so listening seconds are forced; what speaks, speaks on. Prints one JSON object
a line:

* equality: float32, so that rounding decides nothing: tokens, codes and samples of both loops;
* repeat: a file, another one, the first again: tokens, codes, mel, source, samples of both times;
* minute: a file of a minute with 40 % speech: real-time factor, what its seconds cost, listening
  and speaking seconds after it, and where their time goes if each part is waited for.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
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
from minicpmo_split import Split, synchronize, watched

MINUTE_S = 60
MORE_S = 10
SPLIT_S = 15
REPEAT_S = 6
PARTS = ("equality", "repeat", "minute")


@dataclass(frozen=True)
class Picture:
    """A frame that needs no decoding."""

    index: int
    rgb: np.ndarray


def speaks(second: int) -> bool:
    """Six seconds of fifteen."""
    return 6 <= second % 15 < 12


def make_units(count: int, seed: int = 0) -> list[Unit]:
    random = np.random.default_rng(seed)
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
    inside: dict[str, list[torch.Tensor]]
    """Of the vocoder: mel, source and samples of each chunk."""

    @property
    def pcm(self) -> np.ndarray:
        return np.concatenate([e.pcm for e in self.events if isinstance(e, Audio)])

    def mean(self, name: str, part: str, seconds: range, speaking: bool) -> float:
        """Mean of one part's cost over the listening or speaking seconds."""
        found = [dict(e.values) for e in self.events if isinstance(e, Metric) and e.name == name]
        chosen = [found[n][part] for n in seconds if speaks(n) is speaking]
        return round(statistics.mean(chosen), 4)


def run(
    model: RandomMiniCpmO,
    units: list[Unit],
    always: bool = False,
    split: Split | None = None,
    note: bool = False,
) -> Outcome:
    """One file.

    Args:
        model: loaded.
        units: its seconds.
        always: whether every second speaks.
        split: takes the time of the parts of the last `SPLIT_S` seconds.
        note: whether to keep what is inside the vocoder.
    """
    duplex = model._parts.duplex
    codes: list[int] = []
    inside: dict[str, list[torch.Tensor]] = {}
    vocoder = duplex.model.tts.audio_tokenizer
    with contextlib.ExitStack() as stack:
        stack.enter_context(
            watched(duplex.model.tts, "generate_chunk", lambda out: codes.extend(flat(out[0])))
        )
        if note:
            for owner, name, kept in (
                (vocoder.flow, "inference_chunk", ("mel",)),
                (vocoder.hift, "forward", ("samples", "source")),
            ):
                stack.enter_context(watched(owner, name, keeper(inside, kept)))
        events: list[Event] = []
        began = time.perf_counter()
        model.open(SampleInfo("one", float(len(units)), 480, 270, 7, Path("unused")), events.append)
        synchronize()
        open_s = time.perf_counter() - began
        costs = []
        for unit in units:
            if split is not None and unit.index == len(units) - SPLIT_S:
                stack.enter_context(split.watching(duplex))
            speaking = always or speaks(unit.index)
            duplex.force_listen_count = 0 if speaking else 10**9
            began = time.perf_counter()
            model.push(unit)
            synchronize()
            costs.append(time.perf_counter() - began)
            if split is not None:
                split.end_second(speaking)
        began = time.perf_counter()
        model.finish()
        synchronize()
        finish_s = time.perf_counter() - began
    return Outcome(costs, open_s, finish_s, events, list(duplex.total_ids), codes, inside)


def flat(codes: torch.Tensor) -> list[int]:
    return [int(code) for code in codes.flatten().tolist()]


def keeper(inside: dict[str, list[torch.Tensor]], names: tuple[str, ...]) -> Callable[..., None]:
    def keep(out: Any) -> None:
        for name, part in zip(names, out, strict=False):
            inside.setdefault(name, []).append(part.clone())

    return keep


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
    facts["samples_equal"] = bool(np.array_equal(one, other))
    if len(one) == len(other):
        facts["largest_difference_of_samples"] = float(np.abs(one - other).max())
        facts["largest_sample"] = float(np.abs(one).max())
    for name, chunks in plain.inside.items():
        pairs = list(zip(chunks, faster.inside[name], strict=False))
        facts[f"largest_difference_of_{name}_in_the_vocoder"] = max(
            float((a - b).abs().max()) if a.shape == b.shape else float("inf") for a, b in pairs
        )
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
        "slowest_second_s": round(max(outcome.costs[: MINUTE_S + MORE_S]), 3),
        "parts_listening": {p: outcome.mean("listen", p, later, False) for p in listen},
        "parts_speaking": {p: outcome.mean("answer", p, later, True) for p in answer},
        "parts_of_the_minute": {p: outcome.mean("answer", p, minute, True) for p in answer},
    }


def measure(snapshot: Any, device: str, kinds: list[str]) -> None:
    """The minute and what follows, in bfloat16, plain first: the model is taken over after it."""
    model = random_model(snapshot.folder, torch.bfloat16, device)
    units = make_units(MINUTE_S + MORE_S + SPLIT_S)
    outcomes = {}
    for kind in kinds:
        runner = load(snapshot, model, {"device": device, "acceleration": kind})
        run(runner, units[:9])  # what is slow once
        torch.cuda.reset_peak_memory_stats()
        split = Split()
        outcomes[kind] = run(runner, units, split=split)
        peak = torch.cuda.max_memory_allocated() / 1e9
        report(**summary(kind, outcomes[kind]), peak_memory_gb=round(peak, 2))
        report(loop=kind, ms_of_each_part_if_waited_for=split.summary())
    if len(outcomes) == 2:
        report(bfloat16=compare(*outcomes.values()))


def load(snapshot: Any, model: Any, settings: dict[str, Any]) -> RandomMiniCpmO:
    runner = RandomMiniCpmO(settings, snapshot, model)
    began = time.perf_counter()
    identity = runner.load()
    kind = settings["acceleration"]
    report(loop=kind, load_s=round(time.perf_counter() - began, 2), **_kept(identity))
    return runner


def _kept(identity: Any) -> dict[str, Any]:
    names = ("acceleration", "captured", "captured_vocoder", "drawing", "warm_up_s")
    return {n: identity.detail[n] for n in names if n in identity.detail}


def check_equality(snapshot: Any, device: str, kinds: list[str]) -> None:
    """Both loops in float32 over a few speaking seconds."""
    model = random_model(snapshot.folder, torch.float32, device)
    units, outcomes = make_units(REPEAT_S), []
    for kind in kinds:
        settings = {"device": device, "acceleration": kind, "dtype": "float32"}
        outcomes.append(run(load(snapshot, model, settings), units, always=True, note=True))
    report(float32=compare(outcomes[0], outcomes[-1]))


def check_repeat(snapshot: Any, device: str, kinds: list[str]) -> None:
    """A, B, A in bfloat16, for each loop."""
    model = random_model(snapshot.folder, torch.bfloat16, device)
    a, b = make_units(REPEAT_S), make_units(REPEAT_S - 2, seed=1)
    for kind in kinds:
        runner = load(snapshot, model, {"device": device, "acceleration": kind})
        first = run(runner, a, always=True, note=True)
        run(runner, b, always=True)
        again = run(runner, a, always=True, note=True)
        report(loop=kind, a_b_a=compare(first, again))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peers", type=Path, default=os.environ.get("HFD_PEERS", "."))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--loops", nargs="+", default=["eager", "graphs"])
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--tiny", action="store_true", help="tiny shapes: does this file run")
    args = parser.parse_args()
    loader.use_own_module_cache()
    shapes = full_config()
    if args.tiny:
        shapes = tiny.config() | {"max_position_embeddings": POSITIONS}
    measures = {"equality": check_equality, "repeat": check_repeat, "minute": measure}
    with tempfile.TemporaryDirectory() as folder:
        snapshot = write_folder(Path(folder) / "MiniCPM-o-random", args.peers, shapes)
        gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
        report(gpu=gpu, torch=torch.__version__, tiny=args.tiny)
        for part in args.parts:
            measures[part](snapshot, args.device, args.loops)
            gc.collect()
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
