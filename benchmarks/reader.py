"""Real-time factor of the unit reader per CPU second, beside decoding the same file alone.

Usage: python benchmarks/reader.py [compiled.mp4]
Without a file a 20 s, 720p test file is made with the ffmpeg of imageio-ffmpeg.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import av
import imageio_ffmpeg

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
from hfd.stream.reader import probe, read_units

UNITS = (1280, 7680, 16000)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1]) if len(sys.argv) > 1 else _test_file(Path(folder))
        seconds = probe(path).seconds
        print(f"{path.name}: {seconds:.1f} s of media; x real time per CPU second, best of 3")
        print(f"  decode alone            {seconds / _cpu(lambda: _decode(path)):6.1f} x")
        for samples in UNITS:
            cost = _cpu(lambda samples=samples: sum(1 for _ in read_units(path, samples)))
            print(f"  reader, {samples / 16:6.0f} ms units {seconds / cost:6.1f} x")
        cost = _cpu(
            lambda: [frame.rgb for unit in read_units(path, 16000) for frame in unit.frames]
        )
        print(f"  the same, all in RGB    {seconds / cost:6.1f} x")


def _cpu(job: Callable[[], object]) -> float:
    costs = []
    for _ in range(3):
        began = time.process_time()
        job()
        costs.append(time.process_time() - began)
    return min(costs)


def _decode(path: Path) -> None:
    with av.open(str(path)) as container:
        container.streams.video[0].thread_type = "NONE"
        for packet in container.demux():
            packet.decode()


def _test_file(folder: Path) -> Path:
    path = folder / "test720.mp4"
    # fmt: off
    subprocess.run(
        [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-nostdin",
         "-f", "lavfi", "-i", "mandelbrot=size=1280x720:rate=5", "-f", "lavfi",
         "-i", "anoisesrc=sample_rate=16000", "-t", "20", "-c:v", "libx264", "-qp", "20",
         "-bf", "0", "-pix_fmt", "yuv420p", "-c:a", "flac", "-ac", "1", "-strict", "-2", path],
        check=True,
    )
    # fmt: on
    return path


if __name__ == "__main__":
    main()
