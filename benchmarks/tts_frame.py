"""Time of one 80 ms frame of Qwen3-TTS, captured and plain, in one run.

    python benchmarks/tts_frame.py [--model FOLDER] [--device cuda:0] [--frames 400]

Without --model a snapshot of the 0.6B shapes with random weights is made in a temporary folder.
A frame is code predictor (15 passes), talker step, decode of an 87-frame codec window and the copy
of 1920 samples to the host, with a read-back each frame, as the server does it. Prints a table
and, with --json, writes the numbers. `plain` runs the same steps without graphs; `stock` is
qwen-tts's own `talker.forward` with its nested generate, without the codec.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

import numpy as np
import torch

from hfd.errors import run_cli
from hfd.models.tts.loading import load_model
from hfd.models.tts.speech import PAD, Manner
from hfd.models.tts.talker import QwenVoice
from make_tts_random import FULL, TINY, make_snapshot

MANNER = Manner("ryan", "english", seed=11)
PART_FRAMES = 60
AGREE_FRAMES = 50


def synchronise(device: str) -> None:
    if device.startswith("cuda"):
        torch.cuda.synchronize()


def timed(device: str, work: Callable[[], Any]) -> float:
    """Milliseconds of `work` with all its device work done."""
    synchronise(device)
    began = time.perf_counter()
    work()
    synchronise(device)
    return (time.perf_counter() - began) * 1000


def summary(times_ms: list[float]) -> dict[str, float]:
    p50, p99 = np.percentile(times_ms, [50, 99])
    return {
        "n": len(times_ms),
        "median_ms": round(float(p50), 2),
        "p99_ms": round(float(p99), 2),
        "max_ms": round(max(times_ms), 2),
    }


def frames(voice: QwenVoice, device: str, count: int) -> dict[str, Any]:
    """Time whole frames after the first, and the first sound from nothing."""
    tokens = voice.tokens("One text token for each frame, as they come from the other server. ")

    def start() -> None:
        voice.begin(tokens[0], MANNER)
        voice.frame()
        voice.pcm(1)

    start()  # warm
    first_ms = [timed(device, start) for _ in range(5)]
    start()
    times = []
    for number in range(count):
        side = tokens[number % len(tokens)]

        def whole(side: int = side) -> None:
            voice.advance(side, False)
            voice.frame()
            voice.pcm(1)

        times.append(timed(device, whole))
    return {"frame": summary(times), "first_sound_ms": round(float(np.median(first_ms)), 2)}


def parts(voice: QwenVoice, device: str) -> dict[str, Any]:
    """Time the three parts of a frame one by one, with a full codec window."""
    split: dict[str, list[float]] = {"talker_step": [], "code_predictor": [], "codec": []}
    for _ in range(PART_FRAMES):
        split["talker_step"].append(timed(device, lambda: voice.advance(PAD, False)))
        split["code_predictor"].append(timed(device, voice.frame))
        split["codec"].append(timed(device, lambda: voice.pcm(1)))
    return {name: summary(times) for name, times in split.items()}


def codes(voice: QwenVoice, count: int) -> torch.Tensor:
    """Codes of the first frames of a seeded utterance: [count, groups]."""
    tokens = voice.tokens("The same text for both paths. ")
    voice.begin(tokens[0], MANNER)
    out = []
    for number in range(count):
        voice.frame()
        out.append(voice._codes.cpu().clone())
        voice.advance(tokens[(number + 1) % len(tokens)], False)
    return torch.stack(out)


@torch.inference_mode()
def stock(model: Any, device: str, count: int) -> dict[str, Any]:
    """qwen-tts's own step: talker.forward with the code predictor through generate."""
    talker = model.talker
    size = talker.config.hidden_size
    dtype = talker.codec_head.weight.dtype
    prompt = torch.randn(1, 10, size, device=device, dtype=dtype)
    out = talker(inputs_embeds=prompt, use_cache=True)
    text = torch.randn(1, 1, size, device=device, dtype=dtype)
    times = []

    def step() -> None:
        nonlocal out
        out = talker(
            input_ids=out.logits[:, -1:, :2048].argmax(-1),
            past_key_values=out.past_key_values,
            past_hidden=out.past_hidden,
            generation_step=0,
            trailing_text_hidden=text,
            tts_pad_embed=text,
            use_cache=True,
            subtalker_dosample=True,
            subtalker_top_k=50,
            subtalker_top_p=1.0,
            subtalker_temperature=0.9,
        )

    for _ in range(count):
        times.append(timed(device, step))
    return {"frame": summary(times[3:])}


def main(argv: list[str] | None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", type=Path, help="snapshot (default: random 0.6B shapes)")
    parser.add_argument("--tiny", action="store_true", help="random tiny shapes, to try the script")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--frames", type=int, default=400, help="captured frames to time")
    parser.add_argument("--plain-frames", type=int, default=60, help="plain frames to time")
    parser.add_argument("--json", type=Path, help="where to write the numbers")
    arguments = parser.parse_args(argv)
    device, on_cuda = arguments.device, arguments.device.startswith("cuda")
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.model or make_snapshot(
            Path(scratch) / "random", TINY if arguments.tiny else FULL
        )
        model, tokenizer = load_model(folder, device, "sdpa")
    report: dict[str, Any] = {
        "device": torch.cuda.get_device_name(device) if on_cuda else device,
        "torch": torch.__version__,
        "talker_parameters": sum(p.numel() for p in model.talker.parameters()),
    }
    plain = QwenVoice(model, tokenizer, captured=False)
    report["plain"] = {
        **frames(plain, device, arguments.plain_frames),
        "parts": parts(plain, device),
    }
    expected = codes(plain, AGREE_FRAMES)
    if on_cuda:
        captured = QwenVoice(model, tokenizer, captured=True)
        report["captured"] = {
            **frames(captured, device, arguments.frames),
            "parts": parts(captured, device),
            "codes_as_plain": (codes(captured, AGREE_FRAMES) == expected).float().mean().item(),
        }
        report["times_faster"] = round(
            report["plain"]["frame"]["median_ms"] / report["captured"]["frame"]["median_ms"], 2
        )
    report["stock"] = stock(model, device, 15)
    for path in ("captured", "plain", "stock"):
        if path in report:
            print(f"{path:9}", json.dumps(report[path]))
    print({key: value for key, value in report.items() if not isinstance(value, dict)})
    if arguments.json:
        arguments.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    run_cli(main)
