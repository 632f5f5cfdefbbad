"""Time ROMA's steps, plain and accelerated, side by side in one run on one GPU.

Weights are random in full size; replies are forced to the rate of ordinary speech (4 text tokens
and 50 codes per spoken second). Writes every number to a JSON file and prints the tables of
docs/performance.md. ``--tiny`` runs the same script on a tiny snapshot, to see that it works.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import numpy as np
import torch
import transformers
from roma_model import RandomRoma, random_parts

from hfd.data.manifest import Sample
from hfd.errors import run_cli
from hfd.models.base import SampleInfo
from hfd.models.roma import unit as units
from hfd.models.roma.acceleration import make_steps
from hfd.models.roma.checkpoint import Parts, load_snapshot
from hfd.models.roma.settings import Settings, parse_settings
from hfd.models.roma.steps import Steps
from hfd.models.roma.vocoder import Vocoder, block_noise
from hfd.models.roma.voice import ALL, Markers, Voice
from hfd.stream.events import Audio, Event
from hfd.stream.reader import probe
from hfd.stream.session import Run, run_sample
from hfd.stream.units import Frame, Unit

KINDS = ("graphs", "eager")
THREADS = ThreadPoolExecutor(2)
Second = tuple[torch.Tensor, units.Grid, torch.Tensor]
"""Patches, grid and log-mel of one second."""
TOKENS_PER_SPOKEN_SECOND = 4
BANDWIDTH = 4.3e12
"""Bytes a second that a device-to-device copy moves on an H200."""


class Bench:
    """One implementation of the steps, with a context that grows."""

    def __init__(self, parts: Parts, settings: Settings, kind: str) -> None:
        self.parts, self.kind = parts, kind
        self.settings = parse_settings({**vars(settings), "acceleration": kind})
        began = time.perf_counter()
        self.steps: Steps = make_steps(parts, self.settings)
        self.warm_up_s = time.perf_counter() - began
        self.unit = make_unit(0)
        self.second = prepare(parts, self.unit)
        self.steps.begin(self.second[1])
        self.position = 0

    def hear_and_see(self) -> None:
        """A whole listening second, the CPU's part too, in the runner's order."""
        heard = self.steps.hear(units.log_mel(self.parts.mel, self.unit.pcm))
        self.listen(heard, *resized_patches(self.unit))

    def listen(self, heard=None, patches=None, grid=None) -> None:
        """Read one second, up to the speak head's answer, and give it to the talker."""
        if heard is None:
            patches, grid, mel = self.second
            heard = self.steps.hear(mel)
        embeds, positions = self.unit_embeds(self.steps.see(patches, grid), heard)
        thought = self.think(embeds, positions)
        self.parts.head.probability(thought.layers)
        self.steps.read_context(thought.hidden, positions)

    def unit_embeds(self, seen, heard) -> tuple[torch.Tensor, torch.Tensor]:
        marks = self.steps.embed([1, 2, 3, 4])
        embeds = torch.cat([marks[:2], seen, heard, marks[2:]])
        return embeds, units.unit_positions(self.position, self.second[1])

    def think(self, embeds: torch.Tensor, positions: torch.Tensor):
        self.position = int(positions[0, -1]) + 1
        return self.steps.think(embeds, positions)

    def token(self, token: int = 5):
        embeds = self.steps.embed([token])
        thought = self.think(embeds, units.text_positions(self.position, 1))
        return int(thought.token), thought.hidden[0] + embeds[0]

    def fill(self, seconds: int) -> None:
        """Listen until the context holds this many seconds."""
        while self.position < 27 * seconds:
            self.listen()

    def voice(self, play: Callable[[np.ndarray], None], codes: int) -> Voice:
        """A voice whose every piece has exactly `codes` codes."""
        talker = self.parts.model.talker
        marks = [self.parts.speaker.bos_token, talker.text_eos_token, talker.text_pad_token]
        return Voice(
            self.steps,
            Markers(*self.steps.embed(marks)),
            frozenset(),
            codes,
            lambda seed: Vocoder(self.steps, block_noise(seed, 24, 80), 12, whole=False),
            play,
            lambda facts: None,
        )

    def speak(self, seconds: int, tokens: int) -> dict[str, float]:
        """One forced answer, `tokens` text tokens long; seconds of compute per spoken second."""
        first: list[float] = []
        voice = self.voice(lambda pcm: first.append(time.perf_counter()), 50 * seconds)
        piece = voice.begin_piece(self.position, 0.0, seed=1)
        synchronize()
        began = time.perf_counter()
        for _ in range(tokens):
            piece.texts.append(self.token()[1])
            voice.advance(ALL)
        voice.close_piece(piece)
        voice.advance(ALL)
        synchronize()
        return {
            "spoken_second_s": (time.perf_counter() - began) / seconds,
            "first_audio_s": first[0] - began,
        }


def make_unit(index: int, seed: int = 0) -> Unit:
    """One second of noise, 1280 x 720."""
    random = np.random.default_rng(seed + index)
    frames = tuple(
        Frame(
            5 * index + n,
            av.VideoFrame.from_ndarray(
                random.integers(0, 256, (720, 1280, 3), dtype=np.uint8)
            ).reformat(format="yuv420p"),
        )
        for n in range(5)
    )
    pcm = (0.1 * random.standard_normal(16_000)).astype(np.float32)
    return Unit(index, 16_000 * index, pcm, frames, 16_000, False)


def at(unit: Unit, index: int, is_last: bool = False) -> Unit:
    """The same media at another second of the file."""
    frames = tuple(Frame(5 * index + n, frame.picture) for n, frame in enumerate(unit.frames))
    return replace(unit, index=index, start=16_000 * index, frames=frames, is_last=is_last)


def prepare(parts: Parts, unit: Unit) -> Second:
    """The CPU's part of a second."""
    return *resized_patches(unit), units.log_mel(parts.mel, unit.pcm)


def resized_patches(unit: Unit) -> tuple[torch.Tensor, units.Grid]:
    """Patches of a unit's pictures, as the runner makes them; they are turned into RGB anew."""
    pictures = [Frame(f.index, f.picture) for f in units.choose_pictures(unit, None)]
    return units.patchify(list(THREADS.map(lambda f: units.resize(f.rgb), pictures)))


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def median_ms(function: Callable[[], Any], repeats: int) -> float:
    """Median milliseconds of a call, the device's work included; two calls warm up."""
    times = []
    for number in range(repeats + 2):
        synchronize()
        began = time.perf_counter()
        function()
        synchronize()
        if number >= 2:
            times.append(time.perf_counter() - began)
    return round(1000 * statistics.median(times), 3)


def time_steps(bench: Bench, repeats: int) -> dict[str, float]:
    """Milliseconds of every step at the context that is filled now."""
    steps, (patches, grid, mel) = bench.steps, bench.second
    seen, heard = steps.see(patches, grid).clone(), steps.hear(mel).clone()
    embeds, positions = bench.unit_embeds(seen, heard)
    states = bench.token()[1]
    opening = torch.stack([states, states])
    rows = {
        "see": median_ms(lambda: steps.see(patches, grid), repeats),
        "hear": median_ms(lambda: steps.hear(mel), repeats),
        "think unit": median_ms(lambda: bench.think(*bench.unit_embeds(seen, heard)), repeats),
        "think token": median_ms(bench.token, repeats),
        "talker reads unit": median_ms(lambda: steps.read_context(embeds, positions), repeats),
        "listening second": median_ms(bench.hear_and_see, repeats),
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
    unit = make_unit(0)
    pictures = units.choose_pictures(unit, None)
    rgb = [frame.rgb for frame in pictures]
    small = [units.resize(picture) for picture in rgb]
    tokens = list(range(25))

    def to_rgb() -> list[np.ndarray]:
        return [Frame(frame.index, frame.picture).rgb for frame in pictures]

    return {
        "two pictures to RGB": median_ms(to_rgb, 10),
        "two pictures resized": median_ms(lambda: [units.resize(p) for p in rgb], 10),
        "patchify": median_ms(lambda: units.patchify(small), 10),
        "log-mel": median_ms(lambda: units.log_mel(parts.mel, unit.pcm), 10),
        "all of these, in two threads": median_ms(lambda: prepare(parts, unit), 10),
        "25 tokens to text": median_ms(
            lambda: parts.tokenizer.decode(tokens, skip_special_tokens=True), 10
        ),
    }


def compare(parts: Parts, settings: Settings, seconds: int) -> dict[str, Any]:
    """Greedy tokens and codes of both implementations from one context.

    After a difference both go on from the plain path's choice, so each difference stands alone. It
    is listed with its number, both choices, how far the plain path's logits of the two lie apart,
    and the largest distance between the two paths' logits at that step: a tie within rounding is
    one whose lead is smaller than what rounding moved.
    """
    greedy = parse_settings({**vars(settings), "temperature": 0.0})
    with (
        last_output(parts, parts.model.thinker.lm_head) as tokens_at,
        last_output(parts, parts.model.talker.codec_head) as codes_at,
    ):
        plain, fast = (Bench(parts, greedy, kind) for kind in ("eager", "graphs"))
        for bench in (plain, fast):
            bench.fill(seconds)
        found, states = compare_tokens(plain, fast, tokens_at)
        return found | compare_codes(plain, fast, states, codes_at)


def compare_tokens(plain: Bench, fast: Bench, logits: torch.Tensor):
    token, states, differences, distances = 5, [], [], []
    for number in range(50):
        wanted, state = plain.token(token)
        ours = logits.clone()
        got, _ = fast.token(token)
        distances.append(float((ours - logits).abs().max()))
        if got != wanted:
            lead = float(ours[wanted] - ours[got])
            differences.append([number, wanted, got, lead, distances[-1]])
        token = wanted
        states.append(state)
    return {
        "tokens": 50,
        "token_logits_apart": statistics.median(distances),
        "token_differences": differences,
    }, states


def compare_codes(plain: Bench, fast: Bench, states: list[torch.Tensor], logits: torch.Tensor):
    differences, distances, said = [], [], set()
    newest = {}
    opening = torch.stack(states[:2])
    for bench in (plain, fast):
        bench.steps.start_speech(opening, bench.position, torch.zeros(300))
        newest[bench.kind] = logits.clone()
    for number in range(200):
        wanted, got = plain.steps.read_code(), fast.steps.read_code()
        ours, theirs = newest["eager"], newest["graphs"]
        distances.append(float((ours - theirs).abs().max()))
        if got != wanted:
            lead = float(ours[wanted] - ours[got])
            differences.append([number, wanted, got, lead, distances[-1]])
            fast.steps._code.fill_(wanted)
            fast.steps._seen[wanted] = True
            fast.steps._seen[got] = got in said
        said.add(wanted)
        state = states[min(number + 2, len(states) - 1)]
        for bench in (plain, fast):
            bench.steps.next_code(state)
            newest[bench.kind] = logits.clone()
    return {
        "codes": 200,
        "distinct_codes": len(said),
        "code_logits_apart": statistics.median(distances),
        "code_differences": differences,
    }


@contextmanager
def last_output(parts: Parts, head: torch.nn.Linear) -> Iterator[torch.Tensor]:
    """The head's newest output; a graph captured inside the block writes it too."""
    newest = torch.zeros(head.out_features, device=parts.device)

    def keep(_: Any, __: Any, out: torch.Tensor) -> None:
        newest.copy_(out.flatten())

    hook = head.register_forward_hook(keep)
    try:
        yield newest
    finally:
        hook.remove()


def compare_sound(parts: Parts, settings: Settings) -> dict[str, float]:
    """Relative difference (RMS) of waves: chunked and one call, TF32 and float32, both paths."""
    top = parts.model.token2wav.code2wav_dit_model.config.num_embeds
    codes = torch.randint(0, top, (200,), generator=torch.Generator().manual_seed(1)).tolist()

    def wave(kind: str, tf32: bool, whole: bool, seed: int = 3) -> np.ndarray:
        chosen = parse_settings({**vars(settings), "acceleration": kind, "tf32": tf32})
        steps = make_steps(parts, chosen)
        vocoder = Vocoder(steps, block_noise(seed, 24, 80), 12, whole)
        for code in codes:
            vocoder.add(code)
        vocoder.end()
        return np.concatenate(vocoder.take())

    exact = wave("eager", False, True)

    def difference(other: np.ndarray) -> float:
        return float(np.sqrt(np.mean((other - exact) ** 2) / np.mean(exact**2)))

    return {
        "peak": float(np.abs(exact).max()),
        "whole, tf32": difference(wave("eager", True, True)),
        "chunked, float32": difference(wave("eager", False, False)),
        "chunked, tf32": difference(wave("eager", True, False)),
        "chunked, graphs, float32": difference(wave("graphs", False, False)),
        "chunked, graphs, tf32": difference(wave("graphs", True, False)),
        "another seed": difference(wave("eager", False, True, seed=4)),
    }


def first_sound(model: RandomRoma, context_s: int) -> float:
    """Seconds from a firing second's push to its first sound, through the whole runner."""
    heard: list[float] = []
    model.open(
        SampleInfo("first", context_s + 1.0, 1280, 720, 1, Path("unused")),
        lambda e: heard.append(time.perf_counter()) if isinstance(e, Audio) else None,
    )
    model._trigger.quiet_until_s = context_s + 0.5
    prepared = [make_unit(index) for index in range(3)]
    for index in range(context_s + 1):
        synchronize()
        began = time.perf_counter()
        model.push(at(prepared[index % 3], index))
    model.close()
    return heard[0] - began


def end_to_end(model: RandomRoma, media_s: int) -> dict[str, Any]:
    """Compute per second of media of a whole file, through the runner, one third of it spoken."""
    sound: list[int] = []
    content = hashlib.sha256()

    def emit(event: Event) -> None:
        if isinstance(event, Audio):
            sound.append(len(event.pcm))
            content.update(event.pcm.tobytes())

    model.open(
        SampleInfo("whole", float(media_s), 1280, 720, 1, Path("unused")),
        emit,
    )
    prepared = [make_unit(index) for index in range(3)]
    synchronize()
    began = time.perf_counter()
    for index in range(media_s):
        unit = prepared[index % 3]
        model.push(Unit(index, 16_000 * index, unit.pcm, unit.frames, 16_000, index == media_s - 1))
    model.finish()
    synchronize()
    took = time.perf_counter() - began
    model.close()
    return {
        "rtf": took / media_s,
        "spoken_share": sum(sound) / 24_000 / media_s,
        "sound_sha256": content.hexdigest(),
    }


def through_session(model: RandomRoma, media: Path) -> dict[str, Any]:
    """A compiled file through the real session, with its files written: what its result says."""
    info = probe(media)
    sample = Sample("bench", "bench", media, None, info.seconds, {}, 1)
    run = Run("roma", "roma", vars(model.settings), 0, model.identity)
    with tempfile.TemporaryDirectory() as folder:
        result = run_sample(model, run, sample, Path(folder), fingerprint="0" * 64)
    return {**result["rtf"], "first_audio_s": result["first_audio_s"]}


def forced(kind: str) -> dict[str, Any]:
    """Settings that give 6 s of speech (24 tokens, 300 codes) every 18 s."""
    return {
        "acceleration": kind,
        "threshold": 0.0,
        "refractory_s": 18.0,
        "continuation": "stop",
        "text_tokens_per_s": 24,
        "max_codes": 300,
    }


def memory() -> dict[str, float]:
    if not torch.cuda.is_available():
        return {}
    return {
        "allocated_gb": torch.cuda.memory_allocated() / 1e9,
        "peak_reserved_gb": torch.cuda.max_memory_reserved() / 1e9,
    }


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


def measure(
    parts: Parts, settings: Settings, contexts: list[int], repeats: int, media: Path | None
) -> Iterator[Any]:
    """All measurements, one (name, value) at a time, so that an end comes with what was done."""
    yield "model_gb", memory()
    yield "floor_ms", floors(parts)
    yield "cpu_ms", time_cpu(parts)
    for kind in KINDS:
        bench = Bench(parts, settings, kind)
        yield f"{kind} warm_up_s", bench.warm_up_s
        few = repeats if kind == "graphs" else max(2, repeats // 6)
        yield f"{kind} vocoder_ms", time_vocoder(bench, few)
        for seconds in contexts:
            bench.fill(seconds)
            yield f"{kind} steps_ms {seconds}", time_steps(bench, few)
            spoken = 4 if kind == "graphs" else 2
            yield f"{kind} speech {seconds}", bench.speak(spoken, 4 * spoken)
            yield f"{kind} memory {seconds}", memory()
        del bench
        model = RandomRoma({**vars(settings), **forced(kind)}, parts)
        model.identity = model.load()
        yield f"{kind} first_sound_s", first_sound(model, min(60, contexts[-1]))
        if kind == "graphs":
            for number in (1, 2):
                yield f"{kind} end_to_end {number}", end_to_end(model, min(60, contexts[-1]))
            if media is not None:
                yield f"{kind} session", through_session(model, media)
        model.unload()
        del model
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
    yield "sound", compare_sound(parts, settings)
    yield "equality", compare(parts, settings, min(60, contexts[-1]))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="JSON file for all numbers")
    parser.add_argument("--tiny", type=Path, metavar="SNAPSHOT", help="a tiny snapshot instead")
    parser.add_argument("--contexts", type=int, nargs="+", default=[10, 60, 300], help="seconds")
    parser.add_argument("--media", type=Path, help="compiled file to run through the session")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args(argv)
    if options.tiny:
        torch.set_num_threads(1)
        small = {"model_path": str(options.tiny), "device": "cpu", "max_media_s": 100.0}
        settings = parse_settings({**small, "num_steps": 2, "max_codes": 400})
        parts = load_snapshot(settings)
    else:
        settings = parse_settings({"model_path": "random"})
        parts = random_parts(torch.device("cuda:0"))
    numbers: dict[str, Any] = {"torch": torch.__version__, "transformers": transformers.__version__}
    with torch.no_grad():
        for name, value in measure(
            parts, settings, options.contexts, options.repeats, options.media
        ):
            numbers[name] = value
            print(f"{name}: {json.dumps(value)}", flush=True)
            options.out.write_text(json.dumps(numbers, indent=1))
    return 0


if __name__ == "__main__":
    run_cli(main)
