"""Time ROMA's steps, plain and accelerated, side by side in one run on one GPU.

Weights are random in full size; replies are forced to the rate of ordinary speech (4 text tokens
and 50 codes per spoken second). Writes every number to a JSON file, and the tables of
docs/performance.md beside it and to the screen. ``--tiny`` runs the same script on a tiny snapshot,
to see that it works.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
import transformers

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
from hfd.errors import HfdError, run_cli
from hfd.jobs.spec import ModelSpec
from hfd.models.roma import unit as units
from hfd.models.roma.checkpoint import Parts, load_snapshot
from hfd.models.roma.settings import Settings, parse_settings
from roma_bench import Bench, make_unit, median_ms, rgb
from roma_compare import compare, compare_sound
from roma_files import end_to_end, first_sound, forced, through_worker
from roma_model import GivenRoma, random_parts
from roma_tables import tables

KINDS = ("graphs", "eager")
BANDWIDTH = 4.3e12
"""Bytes a second that a device-to-device copy moves on an H200."""


def time_steps(bench: Bench, repeats: int) -> dict[str, float]:
    """Milliseconds of every step at the context that is filled now."""
    steps, (patches, grid, mel) = bench.steps, bench.second
    seen, heard = steps.see(patches, grid).clone(), steps.hear(mel).clone()
    embeds, positions = bench.unit_embeds(seen, heard)
    states = bench.token()[1]
    opening = torch.stack([states, states])
    bench.mark()

    def ms(function: Callable[[], Any]) -> float:
        return median_ms(function, repeats, after=bench.rewind)

    pictures = rgb(bench.unit)
    rows = {
        "shrink and patchify": ms(lambda: units.patchify(steps.shrink(pictures))),
        "see": ms(lambda: steps.see(patches, grid)),
        "hear": ms(lambda: steps.hear(mel)),
        "think unit": ms(lambda: bench.think(*bench.unit_embeds(seen, heard))),
        "think token": ms(bench.token),
        "talker reads unit": ms(lambda: steps.read_context(embeds, positions)),
        "listening second": ms(bench.hear_and_see),
    }
    steps.start_speech(opening, bench.position, torch.rand(400))

    def code() -> None:
        steps.next_code(states)
        steps.read_code()

    rows["code"] = median_ms(code, 4 * repeats)
    steps.end_speech()
    return rows


def time_vocoder(bench: Bench, repeats: int) -> dict[str, float]:
    """Milliseconds of mel and samples for the chunked vocoder's windows."""
    rows = {}
    for codes in (12, 48, 84):
        ids = torch.randint(0, 60, (codes,))
        noise = torch.randn(2 * codes, 80)
        with torch.no_grad():
            mel = bench.steps.make_mel(ids, noise)
        rows[f"mel, {codes} codes"] = median_ms(lambda: bench.steps.make_mel(ids, noise), repeats)  # noqa: B023
        rows[f"samples, {codes} codes"] = median_ms(lambda: bench.steps.make_wave(mel), repeats)  # noqa: B023
    return rows


def time_cpu(parts: Parts) -> dict[str, float]:
    """Milliseconds of what the CPU does for one second of 1280 x 720 media."""
    unit, tokens = make_unit(0), list(range(25))
    pictures = rgb(unit)
    small = units.resize_all(pictures)
    return {
        "two pictures to RGB": median_ms(lambda: rgb(unit), 10),
        "two pictures resized by Pillow": median_ms(lambda: units.resize_all(pictures), 10),
        "patchify": median_ms(lambda: units.patchify(small), 10),
        "log-mel": median_ms(lambda: units.log_mel(parts.mel, unit.pcm), 10),
        "25 tokens to text": median_ms(
            lambda: parts.tokenizer.decode(tokens, skip_special_tokens=True), 10
        ),
    }


def memory() -> dict[str, float]:
    if not torch.cuda.is_available():
        return {}
    return {
        "allocated_gb": torch.cuda.memory_allocated() / 1e9,
        "peak_reserved_gb": torch.cuda.max_memory_reserved() / 1e9,
    }


def free_memory() -> None:
    """Give back what nothing uses any more, and count peaks anew."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def floors(parts: Parts) -> dict[str, float]:
    """Milliseconds in which each step's weights can be read once."""
    model = parts.model

    def ms(*modules: torch.nn.Module) -> float:
        size = sum(p.numel() * p.element_size() for m in modules for p in m.parameters())
        return 1000 * size / BANDWIDTH

    thinker = ms(model.thinker.model.layers, model.thinker.lm_head)
    return {
        "see": ms(model.thinker.visual),
        "hear": ms(model.thinker.audio_tower),
        "think unit": thinker,
        "think token": thinker,
        "talker reads unit": ms(model.talker.model.layers),
        "code": ms(model.talker.model.layers, model.talker.codec_head),
        "mel": 36 * ms(model.token2wav.code2wav_dit_model.transformer_blocks),
        "samples": ms(model.token2wav.code2wav_bigvgan_model),
    }


def measure(parts: Parts, settings: Settings, options: argparse.Namespace) -> Iterator[Any]:
    """All measurements, one (name, value) at a time, so that an end comes with what was done."""
    repeats, last = options.repeats, min(60, options.contexts[-1])
    yield "model_gb", memory()
    yield "floor_ms", floors(parts)
    yield "cpu_ms", time_cpu(parts)
    if options.work is not None:
        module = "roma" if options.tiny else "bench.roma_model"
        spec = ModelSpec("roma_bench", module, {**vars(settings), **forced("graphs")})
        yield "worker", through_worker(options.work, spec)
        free_memory()
    for kind in KINDS:
        bench = Bench(parts, settings, kind)
        yield f"{kind} warm_up_s", bench.warm_up_s
        few = repeats if kind == "graphs" else max(2, repeats // 6)
        for seconds in options.contexts if kind == "graphs" else options.plain_contexts:
            bench.fill(seconds)
            yield f"{kind} steps_ms {seconds}", time_steps(bench, few)
            spoken = 4 if kind == "graphs" else 2
            yield f"{kind} speech {seconds}", bench.speak(spoken, 4 * spoken)
            yield f"{kind} memory {seconds}", memory()
        yield f"{kind} vocoder_ms", time_vocoder(bench, few)
        del bench
        free_memory()
    for kind in KINDS:
        model = GivenRoma({**vars(settings), **forced(kind)}, parts)
        model.identity = model.load()
        yield f"{kind} first_sound_s", first_sound(model, last)
        if kind == "graphs":
            for number in (1, 2):
                yield f"{kind} end_to_end {number}", end_to_end(model, last)
        model.unload()
        del model
        free_memory()
    yield "equality", compare(parts, settings, last)
    if not options.without_sound:
        yield "sound", compare_sound(parts, settings)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--out", type=Path, default=Path("benchmarks/roma_steps.json"), help="for all numbers"
    )
    parser.add_argument("--tiny", type=Path, metavar="SNAPSHOT", help="a tiny snapshot instead")
    parser.add_argument("--contexts", type=int, nargs="+", default=[10, 60, 300], help="seconds")
    parser.add_argument(
        "--plain-contexts", type=int, nargs="+", help="seconds for the plain path (default: same)"
    )
    parser.add_argument("--without-sound", action="store_true", help="do not compare waves")
    parser.add_argument(
        "--work",
        type=Path,
        metavar="FOLDER",
        help="working folder whose samples go through the shard worker, such as .demo",
    )
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args(argv)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.plain_contexts = options.plain_contexts or options.contexts
    if options.tiny:
        torch.set_num_threads(1)
        small = {"model_path": str(options.tiny), "device": "cpu", "max_media_s": 100.0}
        settings = parse_settings({**small, "num_steps": 2, "max_codes": 400})
        parts = load_snapshot(settings)
    else:
        if not torch.cuda.is_available():
            raise HfdError("there is no GPU to measure", remedy="Use a GPU machine, or --tiny")
        settings = parse_settings({"model_path": "random"})
        parts = random_parts(torch.device("cuda:0"))
    numbers: dict[str, Any] = {"torch": torch.__version__, "transformers": transformers.__version__}
    with torch.no_grad():
        for name, value in measure(parts, settings, options):
            numbers[name] = value
            print(f"{name}: {json.dumps(value)}", flush=True)
            options.out.write_text(json.dumps(numbers, indent=1))
    shown = tables(numbers)
    options.out.with_suffix(".md").write_text(shown, encoding="utf-8")
    print(shown)
    return 0


if __name__ == "__main__":
    run_cli(main)
