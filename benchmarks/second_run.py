"""What a run costs that has nothing to do: five models, each with every sample finished.

Usage: python benchmarks/second_run.py [--samples 1024] [--models 5]
The results are made for real, with the tests' model that keeps silent, on this machine; that takes
minutes.
Exit code 1 if the second run starts a job or takes more than 15 s of processor time.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "scripts")]

from tests.workflow.desk import Desk  # noqa: E402

MAX_S = 15.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1024)
    parser.add_argument("--models", type=int, default=5)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        desk = Desk(Path(name))
        desk.add_samples([f"s{number:04d}" for number in range(args.samples)], pictures=16)
        for number in range(args.models):
            desk.add_model(f"model_{number}", speak=False)
        for model in desk.models:
            desk.start(f"results_{model}").end(timeout_s=3600)
        wall_s, cpu_s = _timed(lambda: desk.run("all"))
        idle = "Nothing to be done" in Path(name, f"run{desk.runs}.txt").read_text()
    print(f"{args.samples} samples, {args.models} models")
    print(
        f"second run: {wall_s:.1f} s, {cpu_s:.1f} s of processor time, {'no' if idle else 'A'} job"
    )
    return int(not idle or cpu_s > MAX_S)


def _timed(work) -> tuple[float, float]:
    """Seconds on the clock and on the processor that a child process takes."""
    began, before = time.monotonic(), _cpu_s()
    work()
    return time.monotonic() - began, _cpu_s() - before


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
