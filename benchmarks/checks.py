"""What the first run of the checks costs: every sample through Snakemake, beside the bare check.

Usage: python benchmarks/checks.py [--samples 128]

Printed are seconds of processor time for each sample: of the run, of one check as a process of its
own, and of the check's work without starting Python. What 1024 samples take on two cores follows
from the first. The samples are small (64x48): a real video's decoding comes on top, in all three.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from benchmarks.second_run import cpu_s  # noqa: E402
from tests.workflow.desk import Desk  # noqa: E402

from hfd.data.check import Subject, check_sample  # noqa: E402

ALONE = 10


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=128)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        desk = Desk(Path(name))
        desk.add_samples([f"s{number:04d}" for number in range(args.samples)], pictures=100)
        began = time.monotonic()
        run = cpu_s(partial(desk.run, "check_data")) / args.samples
        wall = (time.monotonic() - began) / args.samples
        video, adapter = (
            Path(name, "data", kind, f"s0000.{end}")
            for kind, end in (("videos", "mp4"), ("adapters", "json"))
        )
        alone = cpu_s(partial(_check_alone, video, adapter)) / ALONE
        subject = Subject("s0000", "chat", video, adapter, 20.0)
        began = time.process_time()
        for _ in range(ALONE):
            check_sample(subject)
        work = (time.process_time() - began) / ALONE
    print(f"a check through Snakemake: {run:.3f} s of processor, {wall:.3f} s of wall time")
    print(f"as a process of its own: {alone:.3f} s, ratio {run / alone:.2f}")
    print(f"its work alone: {work:.3f} s, ratio {run / work:.2f}")
    print(f"1024 samples: {1024 * run:.0f} s of processor, {512 * run:.0f} s on two idle cores")
    return 0


def _check_alone(video: Path, adapter: Path) -> None:
    command = [sys.executable, ROOT / "scripts" / "check_sample.py", "--sample-id=s0000"]
    command += ["--task=chat", f"--video={video}", f"--adapter={adapter}", "--duration=20"]
    for _ in range(ALONE):
        subprocess.run(
            [*command, f"--output={video}.json"], check=True, stdout=subprocess.DEVNULL,
            env={"OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
