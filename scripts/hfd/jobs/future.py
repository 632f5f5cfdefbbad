"""Files dated in the future, as they are after the clock was set back."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from hfd.errors import HfdError


def leave_the_future(paths: Iterable[Path]) -> int:
    """Date files of the future to now; return how many there were.

    Snakemake refuses the output of a job whose inputs are newer, whatever the job has done.
    Nothing else depends on these times: results are judged by content.

    Raises:
        HfdError: a file cannot be dated anew, being read-only or somebody else's.
    """
    now, found = time.time(), 0
    refused: list[Path] = []
    for path in paths:
        if path.is_file() and path.stat().st_mtime > now:
            found += 1
            try:
                os.utime(path, (now, now))
            except OSError:
                refused.append(path)
    if refused:
        latest = max(path.stat().st_mtime for path in refused)
        until = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(latest))
        more = f" (and {len(refused) - 1} more)" if len(refused) > 1 else ""
        raise HfdError(
            f"is dated in the future{more}, and only its owner can change that",
            file=refused[0],
            remedy=f"Correct the clock, let its owner touch it, copy it, or wait until {until}",
        )
    return found
