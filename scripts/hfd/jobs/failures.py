"""Error records: why a sample failed, how it counts, and how many workers ended under it."""

from __future__ import annotations

import os
import socket
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from hfd.data.manifest import Sample
from hfd.duplex.model import ModelBroken
from hfd.errors import HfdError, LostAs
from hfd.files import write_json
from hfd.jobs.store import Store
from hfd.secrets import scrub

_MOST_TEXT = 4000
"""Characters of an error that are recorded."""
_BROKEN_DEVICE = ("CUDA error", "device-side assert", "cuDNN error", "NCCL error", "HIP error")


@dataclass
class Failures:
    """The error records that one worker writes.

    Attributes:
        store: where they lie.
        shard: the shard's name; deaths are counted per name.
        secrets: what must not be written down.
    """

    store: Store
    shard: str
    secrets: Sequence[str] = ()

    def told(self, text: str) -> str:
        """A text as files and logs may hold it, whatever a server or a library put into it.

        Without secrets, no longer than anybody reads (the witness's log is continued from its last
        MiB), and without half characters, which no file can hold.
        """
        told = scrub(text, self.secrets).encode("utf-8", "backslashreplace").decode()
        more = f" ... ({len(told)} characters)" if len(told) > _MOST_TEXT else ""
        return told[:_MOST_TEXT] + more

    def attempts(self, sample: Sample) -> int:
        """How many times the sample has failed so far."""
        return (self.store.error(sample.sample_id) or {}).get("attempt", 0)

    def deaths(self, sample: Sample) -> int:
        """How many workers of this shard ended under the sample."""
        deaths = (self.store.error(sample.sample_id) or {}).get("deaths", {})
        return deaths.get(self.shard, 0)

    def note_death(self, sample: Sample, fingerprint: str, owner: dict[str, Any]) -> None:
        """Its last worker died under it; `owner` is what that one wrote into its lease."""
        job = f", job {owner['job']}" if owner.get("job") else ""
        text = f"its worker died (process {owner.get('pid')} on {owner.get('host')}{job})"
        here = owner.get("shard") == self.shard
        self.record(sample, fingerprint, HfdError(text), deaths=int(here))

    def record(
        self,
        sample: Sample,
        fingerprint: str,
        error: Exception,
        *,
        deaths: int = 0,
        of_input: bool = False,
    ) -> None:
        """Write the error record of a sample: one line, and where in the code it happened."""
        known = isinstance(error, HfdError)
        lines = [] if known else "".join(traceback.format_exception(error)).splitlines()
        write_json(
            self.store.error_file(sample.sample_id),
            {
                "sample_id": sample.sample_id,
                "model": self.store.model,
                "error": self.told(one_line(error)),
                "kind": type(error).__name__,
                "lost_as": _lost_as(error),
                "input": of_input,
                "attempt": self.attempts(sample) + 1,
                "deaths": {self.shard: self.deaths(sample) + deaths},
                "fingerprint": fingerprint,
                "time": datetime.now().astimezone().isoformat(timespec="seconds"),
                "host": socket.gethostname(),
                "job": os.environ.get("SLURM_JOB_ID"),
                "traceback": [self.told(line) for line in lines[-30:]],
            },
        )


def one_line(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    return text if isinstance(error, HfdError) else f"{type(error).__name__}: {text}"


def _lost_as(error: BaseException) -> LostAs:
    """How the sample is counted: as the first error of its chain that says so."""
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen:
        if isinstance(at, HfdError) and at.lost_as != "failed":
            return at.lost_as
        seen.add(id(at))
        at = at.__cause__
    return "failed"


def is_beyond_use(error: Exception) -> bool:
    """Whether no other sample could succeed in this process either."""
    return isinstance(error, ModelBroken) or any(sign in str(error) for sign in _BROKEN_DEVICE)
