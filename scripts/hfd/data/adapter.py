"""A sample's adapter: what is said in it, and when, in media seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfd.data.fields import kind, seconds
from hfd.errors import HfdError
from hfd.files import read_json

ADAPTER_SCHEMA = "hfd-adapter/1"
"""Value of ``schema`` in adapters that this workflow wrote."""
FIRST_QUESTION = "first_question"
SECOND_QUESTION = "second_question"


@dataclass(frozen=True)
class AdapterEvent:
    """Something said in the sample.

    Attributes:
        start, end: media seconds, ``0 <= start < end``.
        role: ``first_question``, ``second_question``, another word of the team's, or None.
        text: what was meant.
        spoken_text: what is heard; of the first question the unfinished prefix.
        row: the event as it stands in the file, unknown keys too.
    """

    start: float
    end: float
    role: str | None
    text: str | None
    spoken_text: str | None
    row: Mapping[str, Any]


@dataclass(frozen=True)
class Adapter:
    """An adapter file.

    Attributes:
        events: the events that have a start and an end, in the file's order.
        row: the whole file, unknown keys too.
    """

    events: tuple[AdapterEvent, ...]
    row: Mapping[str, Any]

    @property
    def first(self) -> AdapterEvent | None:
        """The first question: by role, else the first of exactly two events."""
        return self._question(FIRST_QUESTION, 0)

    @property
    def second(self) -> AdapterEvent | None:
        """The corrected question: by role, else the second of exactly two events."""
        return self._question(SECOND_QUESTION, 1)

    @property
    def p0(self) -> float | None:
        """Start of the unfinished prefix, media seconds."""
        return self.first.start if self.first else None

    @property
    def p1(self) -> float | None:
        """End of the unfinished prefix, media seconds."""
        return self.first.end if self.first else None

    @property
    def q0(self) -> float | None:
        """Start of the corrected question, media seconds."""
        return self.second.start if self.second else None

    @property
    def q1(self) -> float | None:
        """End of the corrected question, media seconds."""
        return self.second.end if self.second else None

    @property
    def qend(self) -> float | None:
        """End of the user's last words: q1, else the last end of any event."""
        return self.q1 if self.second else max((event.end for event in self.events), default=None)

    def _question(self, role: str, place: int) -> AdapterEvent | None:
        if any(event.role is not None for event in self.events):
            return next((event for event in self.events if event.role == role), None)
        return self.events[place] if len(self.events) == 2 else None


def read_adapter(path: str | Path) -> Adapter:
    """Read an adapter; it may have no events, and events may have no times (other tasks).

    Raises:
        HfdError: not valid JSON, no object, `events` that is no list of objects, or a time that
            is no number of seconds or an end that does not lie after its start.
    """
    value = read_json(path)
    if not isinstance(value, dict):
        raise HfdError(f"is {kind(value)}, not an object", file=path)
    listed = value.get("events")
    if listed is not None and not isinstance(listed, list):
        raise HfdError(f"is {kind(listed)}, not a list", file=path, field="events")
    events = [_event(event, path, f"events[{n}]") for n, event in enumerate(listed or [])]
    return Adapter(tuple(event for event in events if event), value)


def _event(value: object, path: str | Path, field: str) -> AdapterEvent | None:
    if not isinstance(value, dict):
        raise HfdError(f"is {kind(value)}, not an object", file=path, field=field)
    if value.get("start") is None and value.get("end") is None:
        return None
    start = seconds(value.get("start"), file=path, field=f"{field}.start")
    end = seconds(value.get("end"), file=path, field=f"{field}.end")
    if end <= start:
        raise HfdError(f"end {end:g} is not after start {start:g}", file=path, field=field)
    return AdapterEvent(
        start=start,
        end=end,
        role=_optional_text(value.get("role")),
        text=_optional_text(value.get("text")),
        spoken_text=_optional_text(value.get("spoken_text")),
        row=value,
    )


def _optional_text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None
