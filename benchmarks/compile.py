"""CPU time of compiling one sample, verification included, against decoding its source alone.

Usage: python benchmarks/compile.py [source.mp4]
Without a file a hard 20 s, 720p, 30 fps source is made. Prints ratio, PSNR and hashes of three
runs; exit code 1 if the ratio is over 2.5, PSNR under 40 dB, or the bytes differ.
"""

from __future__ import annotations

import json
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import imageio_ffmpeg
import numpy as np
import soundfile

ROOT = Path(__file__).resolve().parents[1]
FFMPEG = imageio_ffmpeg.get_ffmpeg_exe()
MAX_RATIO = 2.5
MIN_PSNR = 40.0
RUNS = 3


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        source = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else _hard_source(folder)
        _write_raw(folder, source)
        video, adapter = folder / "v.mp4", folder / "a.json"
        compile_one = [
            *(sys.executable, str(ROOT / "scripts/compile_hesitation.py")),
            *(f"--raw={folder}/manifest.jsonl", f"--root={folder}", "--sample-id=bench"),
            *(f"--video={video}", f"--adapter={adapter}"),
        ]
        decode = [*_ffmpeg("-threads", "1", "-i", source), "-map", "0:v", "-f", "null", "-"]
        decode_s = min(_cpu(decode) for _ in range(RUNS))
        costs, hashes = [], set()
        for _ in range(RUNS):
            costs.append(_cpu(compile_one))
            hashes.add(json.loads(adapter.read_text())["compiled"]["video_sha256"])
        frames = json.loads(adapter.read_text())["compiled"]["frames"]
        psnr = _psnr(video, source, frames)
        size = video.stat().st_size / 2**20
    ratio = min(costs) / decode_s
    print(f"decode the source alone      {decode_s:6.2f} CPU s")
    print(f"compile, verified, from CLI  {min(costs):6.2f} CPU s  ({ratio:.2f} x, bar {MAX_RATIO})")
    print(f"PSNR against the source      {psnr:6.2f} dB     (bar {MIN_PSNR})")
    print(f"size {size:.1f} MiB, {frames} pictures, {len(hashes)} different file(s) in {RUNS} runs")
    return int(ratio > MAX_RATIO or psnr < MIN_PSNR or len(hashes) > 1)


def _ffmpeg(*arguments: str | Path) -> list[str]:
    return [FFMPEG, "-nostdin", "-v", "error", "-y", *map(str, arguments)]


def _hard_source(folder: Path) -> Path:
    """Fractal zoom under a moving test picture and noise: nothing in it is easy to encode."""
    path = folder / "source.mp4"
    graph = "[0][1]blend=all_mode=average,noise=alls=12:allf=t,format=yuv420p"
    inputs = ("mandelbrot=size=1280x720:rate=30:maxiter=1000", "testsrc2=size=1280x720:rate=30")
    given = [part for text in inputs for part in ("-f", "lavfi", "-i", text)]
    encode = ("-t", "20", "-c:v", "libx264", "-preset", "medium", "-b:v", "2M", path)
    print("making a hard source (about half a minute) ...")
    subprocess.run(_ffmpeg(*given, "-filter_complex", graph, *encode), check=True)
    return path


def _write_raw(folder: Path, source: Path) -> None:
    noise = np.random.default_rng(0).uniform(-0.3, 0.3, 5 * 48_000)
    soundfile.write(folder / "voice.wav", noise, 48_000)
    (folder / "clip.mp4").symlink_to(source)
    events: list[dict[str, Any]] = [
        {"start": 5.0, "end": 7.0, "spoken_text": "What is", "text": "What is it?"},
        {"start": 8.0, "end": 11.0, "text": "How many?"},
    ]
    for event in events:
        length = event["end"] - event["start"]
        event |= {"audio": "voice.wav", "source_start": 0.5, "source_end": 0.5 + length}
    row = {"sample_id": "bench", "video": "clip.mp4", "timing": {"video_offset": 2.0}}
    row["duplex"] = {"inputs": events}
    (folder / "manifest.jsonl").write_text(json.dumps(row) + "\n")


def _cpu(command: list[str]) -> float:
    """CPU seconds of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _psnr(video: Path, source: Path, frames: int) -> float:
    graph = (
        "[1:v]tpad=stop_mode=clone:stop_duration=4,fps=5:round=up:start_time=0,"
        f"trim=end_frame={frames}[source];[0:v][source]psnr"
    )
    command = [FFMPEG, "-nostdin", "-i", str(video), "-i", str(source)]
    command += ["-filter_complex", graph, "-f", "null", "-"]
    said = subprocess.run(command, check=True, capture_output=True, text=True).stderr
    return float(re.findall(r"PSNR.*average:([\d.]+)", said)[-1])


if __name__ == "__main__":
    sys.exit(main())
