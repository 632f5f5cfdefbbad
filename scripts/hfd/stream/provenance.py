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
from hfd.files import sha256_file
from hfd.stream.machine import cpu_model

_ROOT = Path(__file__).resolve().parents[3]


@functools.cache
def code_version(module: Path | None = None) -> dict[str, Any]:
    """Version, commit and whether files differ from it; outside a git checkout, their hash alone.

    Args:
        module: file or package of a model from outside of this repository, which git does not
            know; the hash of its Python files is added as ``module_sha256``.
    """
    commit = _git("rev-parse", "HEAD")
    if commit:
        new = _git("ls-files", "--others", "--exclude-standard", "--", "scripts") or ""
        changes = (_git("diff", "HEAD", "--", "scripts") or "") + "".join(
            f"\n{name} {sha256_file(_ROOT / name)}" for name in new.splitlines()
        )
        dirty = hashlib.sha256(changes.encode()).hexdigest() if changes else None
    else:
        dirty = _tree_sha256(_ROOT / "scripts")
    found = {"version": hfd.__version__, "commit": commit, "dirty_diff_sha256": dirty}
    return found if module is None else found | {"module_sha256": _tree_sha256(module)}


def _tree_sha256(path: Path) -> str:
    """Hash of a Python file, or of all Python files in a folder, with their names."""
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    lines = [f"{file.relative_to(path.parent).as_posix()} {sha256_file(file)}" for file in files]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


@functools.cache
def environment() -> dict[str, Any]:
    """Python, packages, CPU, GPU and job; the host's name only as a hash, no path and no user."""
    packages = {dist.name: dist.version for dist in metadata.distributions() if dist.name}
    return {
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpu": cpu_model(),
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
