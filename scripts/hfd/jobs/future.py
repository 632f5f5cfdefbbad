"""Files dated in the future, as they are after the clock was set back."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path


def leave_the_future(paths: Iterable[Path]) -> int:
    """Date files of the future to now; return how many there were.

    Snakemake refuses the output of a job whose inputs are newer, whatever the job has done.
    Nothing else depends on these times: results are judged by content.
    """
    now, found = time.time(), 0
    for path in paths:
        if path.is_file() and path.stat().st_mtime > now:
            os.utime(path, (now, now))
            found += 1
    return found
