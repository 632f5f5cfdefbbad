"""Which GPUs a local worker may use: Snakemake counts them but does not name them."""

from __future__ import annotations

import fcntl
import os
import re
import tempfile
import time
from pathlib import Path
from typing import TextIO

from hfd.errors import HfdError

_GIVEN = ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "KUBERNETES_SERVICE_HOST")
_held: list[TextIO] = []  # open for as long as the process lives


def take_gpus(count: int, devices: Path = Path("/dev")) -> None:
    """Set CUDA_VISIBLE_DEVICES to `count` GPUs that no other worker of this machine holds.

    Does nothing where a scheduler has given them (Slurm, Kubernetes) or the variable is set.
    Waits while too few GPUs are free, so that a worker and the orphan of a killed run do not share
    one.

    Raises:
        HfdError: the machine has fewer.
    """
    if not count or given_by_scheduler():
        return
    gpus = machine_gpus(devices)
    if len(gpus) < count:
        raise HfdError(
            f"the model needs {count} GPUs, this machine has {len(gpus)}",
            file="config/models.yaml",
            field="resources.gpu",
            remedy="Run it on a machine with enough GPUs, or through --profile slurm",
        )
    while (taken := _try(gpus, count)) is None:
        print(f"waiting for {count} free GPUs", flush=True)
        time.sleep(10)
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(map(str, taken))


def given_by_scheduler() -> bool:
    """Whether the cards of this process have been chosen already."""
    return any(name in os.environ for name in _GIVEN)


def machine_gpus(devices: Path = Path("/dev")) -> list[int]:
    """Numbers of the cards of this machine."""
    return sorted(int(p.name[6:]) for p in devices.iterdir() if re.fullmatch(r"nvidia\d+", p.name))


def _try(gpus: list[int], count: int) -> list[int] | None:
    """Lock `count` GPUs, or none."""
    locks: dict[int, TextIO] = {}
    stream: TextIO
    for gpu in gpus:
        path = Path(tempfile.gettempdir()) / f"hfd-gpu{gpu}.lock"
        stream = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o666), "r+")
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            locks[gpu] = stream
        except BlockingIOError:
            stream.close()
        if len(locks) == count:
            _held.extend(locks.values())
            return list(locks)
    for stream in locks.values():
        stream.close()
    return None
