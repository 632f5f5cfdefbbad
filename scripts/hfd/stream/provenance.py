"""Where a result was made: code version, packages, machine. Computed once per worker."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import shutil
import socket
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

import hfd

_ROOT = Path(__file__).resolve().parents[3]


@functools.cache
def code_version() -> dict[str, Any]:
    """Version, commit and whether tracked files differ from it (None outside a git checkout)."""
    commit = _git("rev-parse", "HEAD")
    changes = _git("diff", "HEAD", "--", "scripts") if commit else None
    dirty = hashlib.sha256(changes.encode()).hexdigest() if changes else None
    return {"version": hfd.__version__, "commit": commit, "dirty_diff_sha256": dirty}


@functools.cache
def environment() -> dict[str, Any]:
    """Python, packages, GPU and job; the host's name only as a hash, no path and no user."""
    packages = {dist.name: dist.version for dist in metadata.distributions() if dist.name}
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": os.cpu_count(),
        "packages": dict(sorted(packages.items())),
        "gpu": _gpus(),
        "host": hashlib.sha256(socket.gethostname().encode()).hexdigest()[:12],
        "job": os.environ.get("SLURM_JOB_ID"),
    }


def _git(*args: str) -> str | None:
    if not shutil.which("git"):
        return None
    done = subprocess.run(
        ["git", "-C", str(_ROOT), *args], capture_output=True, text=True, check=False
    )
    return done.stdout.strip() if done.returncode == 0 else None


def _gpus() -> list[str]:
    if not shutil.which("nvidia-smi"):
        return []
    query = ["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"]
    try:
        done = subprocess.run(query, capture_output=True, text=True, check=False, timeout=30)
    except subprocess.TimeoutExpired:  # a finished sample must not be lost to it
        return ["unknown: nvidia-smi did not answer"]
    return done.stdout.strip().splitlines() if done.returncode == 0 else []
