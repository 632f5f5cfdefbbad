"""What a check says when something is wrong: which rule, which file, which line, why."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

TRACE = "trace.jsonl.gz"
RESULT = "result.json"
PROVENANCE = "provenance.json"
WAV = "assistant_audio.wav"
FILES = (RESULT, WAV, TRACE, PROVENANCE)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong.

    Attributes:
        rule: the audit rule it breaks (``A1`` … ``A16``).
        file: name of the file inside the result folder.
        message: one sentence a person understands.
        line: number of the first wrong line in that file, from 1, where lines count.
    """

    rule: str
    file: str
    message: str
    line: int | None = None

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}" if self.line else self.file

    def __str__(self) -> str:
        return f"{self.rule} {self.place}: {self.message}"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)
