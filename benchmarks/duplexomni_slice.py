"""The DuplexOmni runner's own cost per slice, as the history grows.

    python benchmarks/duplexomni_slice.py --slices 240

Reference servers (tests/fakes) run as processes of their own and tell how long each
request kept them busy, reading it included. What remains of `push` is the runner: building the
request, the picture, sending, reading the blob, the sound, the events. Virtual clock, so that
nothing overlaps. Prints one JSON object.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

import av
import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from tests.fakes.duplexomni_weights import fake_weights, reference_stack  # noqa: E402

from hfd.duplex.frames import with_frames_taken  # noqa: E402
from hfd.duplex.model import SampleInfo  # noqa: E402
from hfd.duplex.units import Frame, Unit  # noqa: E402
from hfd.errors import run_cli  # noqa: E402
from hfd.models.duplexomni.context import SLICE_SAMPLES  # noqa: E402
from hfd.models.registry import create_model  # noqa: E402


def _pictures(width: int, height: int) -> list[av.VideoFrame]:
    """A few different pictures with natural-looking blur."""
    rng = np.random.default_rng(1)
    made = []
    for _ in range(5):
        blocks = rng.integers(0, 255, (height // 16, width // 16, 3)).astype(np.uint8)
        small = av.VideoFrame.from_ndarray(np.ascontiguousarray(blocks), format="rgb24")
        made.append(small.reformat(width=width, height=height, format="yuv420p"))
    return made


def _units(count: int, width: int, height: int) -> list[Unit]:
    rng, pictures = np.random.default_rng(2), _pictures(width, height)
    units = []
    for index in range(count):
        start = index * SLICE_SAMPLES
        pcm = rng.integers(-9000, 9000, SLICE_SAMPLES).astype(np.float32) / 32768
        numbers = range(-(-start // 3200), -(-(start + SLICE_SAMPLES) // 3200))
        frames = tuple(Frame(number, pictures[number % 5]) for number in numbers)
        units.append(Unit(index, start, pcm, frames, SLICE_SAMPLES, index == count - 1))
    return units


def _busy(port: int) -> list[float]:
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/busy") as answer:
        return json.load(answer)["busy_s"]


def measure(slices: int, width: int, height: int, folder: Path) -> dict[str, object]:
    """Run one sample and split each slice's time between servers and runner."""
    weights = fake_weights(folder / "weights")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "scripts")])
    os.environ["CUDA_VISIBLE_DEVICES"] = "0,1"
    os.environ["REFERENCE_LIGHT"] = "1"
    os.environ["REFERENCE_DELAY_S"] = "0.06"  # a real thinker takes longer
    settings = {"stack": reference_stack(weights), "clock": "virtual"}
    model = create_model("duplexomni", settings)
    wall, cpu = [], []
    try:
        model.load()
        model._limits = type(model._limits)(10**9)  # the context is not what is measured
        model.open(SampleInfo("bench", slices * 0.48, width, height, 1, folder), lambda _: None)
        given = _units(slices, width, height)
        for unit in with_frames_taken(given, model.capabilities.frame_rule):
            began, used = time.perf_counter(), time.process_time()
            model.push(unit)
            wall.append(time.perf_counter() - began)
            cpu.append(time.process_time() - used)
        # The first turn of each server was the warm-up's.
        thinker, talker = (_busy(child.port)[1:] for child in model._stack._children)
        sent = len(model._loop._body.parts[0])
        model.finish()
        model.close()
    finally:
        model.unload()
    own = 1000 * (np.array(wall) - np.array(thinker) - np.array(talker))
    cpu_ms = 1000 * np.array(cpu)
    with_picture = np.arange(slices) % 4 == 0

    def around(values: np.ndarray, index: int) -> float:
        return round(float(np.median(values[max(1, index - 10) : index + 11])), 2)

    far = min(200, slices - 11)
    return {
        "slices": slices,
        "picture": f"{width}x{height}",
        "request_mb_at_end": round(sent / 1e6, 2),
        "own_ms": {
            "median_around_slice_2": around(own, 2),
            f"median_around_slice_{far}": around(own, far),
            "mean": round(float(own.mean()), 2),
            "median_with_picture": round(float(np.median(own[with_picture])), 2),
            "median_without": round(float(np.median(own[~with_picture])), 2),
            "p95": round(float(np.percentile(own, 95)), 2),
            "max": round(float(own.max()), 2),
        },
        "cpu_ms": {
            "median_around_slice_2": around(cpu_ms, 2),
            f"median_around_slice_{far}": around(cpu_ms, far),
            "mean": round(float(cpu_ms.mean()), 2),
            "p95": round(float(np.percentile(cpu_ms, 95)), 2),
            "max": round(float(cpu_ms.max()), 2),
        },
        "servers_ms": round(1000 * float(np.mean(thinker) + np.mean(talker)), 2),
    }


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--slices", type=int, default=240)
    parser.add_argument("--size", default="1280x720", help="picture size, width x height")
    args = parser.parse_args(argv)
    width, height = map(int, args.size.split("x"))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        print(json.dumps(measure(args.slices, width, height, Path(folder)), indent=2))


if __name__ == "__main__":
    run_cli(main)
