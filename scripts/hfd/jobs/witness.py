"""The worker's side of the witness: what became of a sample is written down before anyone sees it.

The entry is written by a process in the workflow's own environment (scripts/witness.py), so that no
model's environment needs the packages that sign.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfd.errors import HfdError
from hfd.files import read_json, sha256_file

KEY = "key.pem"
PUBLIC_KEY = "key.pub.pem"
LOG = "log.jsonl"
_SCRIPT = Path(__file__).resolve().parents[2] / "witness.py"
_TIMEOUT_S = 300


class NotWitnessed(HfdError):
    """The log could not be written: no sample may be run without it."""


def witness_folder(config: Mapping[str, Any]) -> Path | None:
    """The folder that the configuration names, or None where nothing is witnessed.

    Raises:
        HfdError: it holds no key.
    """
    if not config["witness"]:
        return None
    folder = Path(config["witness"]).expanduser()
    if not (folder / KEY).is_file():
        raise HfdError(
            f"holds no {KEY}",
            file=folder,
            field="witness",
            remedy=f"Make one: python scripts/witness_key.py {folder}",
        )
    return folder


@dataclass(frozen=True)
class Witness:
    """Where a worker reports one model's samples.

    Attributes:
        model: its name.
    """

    model: str

    def note(self, entry: Mapping[str, Any]) -> None:
        """Add an entry to the log (docs/formats.md) and wait until it is on the disk.

        Raises:
            NotWitnessed: it could not be written.
        """
        try:
            done = subprocess.run(
                [os.environ.get("HFD_PYTHON", sys.executable), "-E", _SCRIPT],
                input=json.dumps({"model": self.model, **entry}),
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
                start_new_session=True,  # Ctrl-C must not tear an entry
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise NotWitnessed(f"the witness did not answer: {error}") from error
        if done.returncode:
            told = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
            raise NotWitnessed(f"the witness failed: {told[-1].removeprefix('error: ')}")


@dataclass(frozen=True)
class Attempt:
    """One try of one sample, as the witness is told of it; without a witness nobody is.

    Attributes:
        witness: where it is reported, or None.
        sample_id: the sample.
        number: the worker's count of tries.
        fingerprint: of what makes the result valid.
    """

    witness: Witness | None
    sample_id: str
    number: int
    fingerprint: str

    def begins(self) -> None:
        """Before anything is known of how it will end."""
        self._note("begin")

    def ends(self, folder: Path) -> None:
        """Its files are finished, and nobody has seen them."""
        if self.witness is not None:
            provenance = folder / "provenance.json"
            tail = read_json(provenance)["trace"]["tail"]
            self._note("done", tail=tail, provenance_sha256=sha256_file(provenance))

    def fails(self, error: str) -> None:
        self._note("error", error=error)

    def _note(self, kind: str, **fields: Any) -> None:
        if self.witness is not None:
            self.witness.note(
                {
                    "kind": kind,
                    "sample_id": self.sample_id,
                    "attempt": self.number,
                    "fingerprint": self.fingerprint,
                    **fields,
                }
            )
