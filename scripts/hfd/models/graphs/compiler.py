"""Whether kernels can be made for this GPU; importable without what makes them."""

from __future__ import annotations

import os
import shutil
from importlib.util import find_spec


def what_kernels_lack() -> str | None:
    """What is missing to make kernels: triton, or the C compiler that it calls; None if nothing."""
    if find_spec("triton") is None:
        return "triton"
    names = filter(None, (os.environ.get("CC"), "gcc", "clang"))
    return None if any(map(shutil.which, names)) else "a C compiler (gcc or clang)"
