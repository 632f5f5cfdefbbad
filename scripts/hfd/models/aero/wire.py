"""A websocket's vocabulary as data: what to send for a unit, and what a message means.

The Aero server's source is not public, so its event names, fields and encodings are read from a
file (config/wires/*.yaml) and can be mended without code.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml

from hfd.duplex.units import Unit
from hfd.errors import HfdError
from hfd.files import sha256_file
from hfd.models.sockets.messages import read_object

SCHEMA = "hfd-wire/1"
EventKind = Literal["text", "silence", "final", "error", "ignored", "unknown"]


@dataclass(frozen=True)
class SentFrame:
    """A video frame as it is sent: its time in the file and its JPEG bytes."""

    seconds: float
    jpeg: bytes


@dataclass(frozen=True)
class WireEvent:
    """One message of the server.

    Attributes:
        kind: what it means.
        name: the server's own name for it.
        text: the delta, or the error's message.
        token_ids: the delta's tokens, if the server tells them.
        slot: the 80 ms unit it answers, if the server tells it.
        values: what the server issued with it (a session id), by the wire file's names.
    """

    kind: EventKind
    name: str
    text: str = ""
    token_ids: tuple[int, ...] = ()
    slot: int | None = None
    values: Mapping[str, str | int] = field(default_factory=dict)


def _pcm16(unit: Unit) -> bytes:
    return np.clip(np.rint(unit.pcm * 32768.0), -32768, 32767).astype("<i2").tobytes()


def _float32(unit: Unit) -> bytes:
    return unit.pcm.astype("<f4").tobytes()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


_UNIT_VALUES: dict[str, Callable[[Unit], Any]] = {
    "index": lambda unit: unit.index,
    "start_s": lambda unit: unit.t0,
    "end_s": lambda unit: unit.t1,
    "samples": lambda unit: len(unit.pcm),
    "pcm16": _pcm16,
    "float32": _float32,
    "pcm16_base64": lambda unit: _base64(_pcm16(unit)),
    "float32_base64": lambda unit: _base64(_float32(unit)),
}
_FRAME_VALUES: dict[str, Callable[[SentFrame], Any]] = {
    "picture_s": lambda frame: frame.seconds,
    "picture_jpeg": lambda frame: frame.jpeg,
    "picture_jpeg_base64": lambda frame: _base64(frame.jpeg),
}
_PLACEHOLDER = re.compile(r"^\{(\w+)\}$")
MOST_VALUE_CHARACTERS = 4096


class Wire:
    """One server's vocabulary.

    Attributes:
        name: the file's name.
        sha256: hash of the file, for the record.
        awaited: values that the server must have issued before the first unit.
    """

    def __init__(self, path: Path) -> None:
        """Read and check a wire file.

        Raises:
            HfdError: missing or broken file, unknown placeholder, missing list.
        """
        self.name = path.name
        try:
            content = yaml.safe_load(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise HfdError("wire file is missing", file=path, field="settings.wire") from error
        except (yaml.YAMLError, UnicodeDecodeError) as error:
            raise HfdError(f"is no valid YAML ({error})", file=path) from error
        self.sha256 = sha256_file(path)
        try:
            self._read(content)
        except (KeyError, TypeError, AttributeError, re.error) as error:
            raise HfdError(
                f"does not have the form of a wire file ({type(error).__name__}: {error})",
                file=path,
                remedy="Compare with config/wires/aero.yaml; keys are explained in docs/aero.md",
            ) from error

    def _read(self, content: Mapping[str, Any]) -> None:
        if content["schema"] != SCHEMA:
            raise KeyError(f"schema must be {SCHEMA}")
        send, receive = content["send"], content["receive"]
        self._open, self._unit, self._done = (list(send[part]) for part in ("open", "unit", "done"))
        issued = receive.get("values", {})
        self._values = {name: list(paths) for name, paths in issued.items()}
        known = {*_UNIT_VALUES, *_FRAME_VALUES, *self._values}
        for name in _placeholders([*self._open, *self._unit, *self._done]):
            if name not in known:
                raise KeyError(f"unknown placeholder {{{name}}}, known: {sorted(known)}")
        if early := _placeholders(self._open):
            raise KeyError(f"{sorted(early)} cannot be known when the session is opened")
        self.awaited = frozenset(_placeholders([*self._unit, *self._done]) & {*self._values})
        self._type = list(receive["type"])
        self._fields = {key: list(receive["text"][key]) for key in ("text", "token_ids", "slot")}
        self._message = list(receive["error"]["message"])
        self._kinds: dict[str, EventKind] = {
            **dict.fromkeys(receive["ignored"], "ignored"),
            **dict.fromkeys(receive["silence"], "silence"),
            **dict.fromkeys(receive["final"], "final"),
            **dict.fromkeys(receive["error"]["events"], "error"),
            **dict.fromkeys(receive["text"]["events"], "text"),
        }
        self.markers = re.compile(content["markers"])
        silence = Unit(0, 0, np.zeros(1, np.float32), (), 1, False)
        said = dict.fromkeys(self._values, "")
        self.unit_messages(silence, SentFrame(0.0, b""), said)  # raises what could never be sent

    def open_messages(self) -> list[str | bytes]:
        """What to send before the first unit."""
        return [_encode(message) for message in self._open]

    def done_messages(self, issued: Mapping[str, str | int]) -> list[str | bytes]:
        """What to send when the file is over; `issued` has the values that the server gave."""
        return [_encode(_filled(message, issued)) for message in self._done]

    def unit_messages(
        self, unit: Unit, frame: SentFrame | None, issued: Mapping[str, str | int]
    ) -> list[str | bytes]:
        """What to send for one unit and the video frame that belongs to it, if any."""
        values: dict[str, Any] = {}
        for name in _placeholders(self._unit):
            if name in _UNIT_VALUES:
                values[name] = _UNIT_VALUES[name](unit)
            elif name in _FRAME_VALUES:
                values[name] = None if frame is None else _FRAME_VALUES[name](frame)
            else:
                values[name] = issued[name]
        filled = (_fill(template, values, self.awaited) for template in self._unit)
        return [_encode(message) for message in filled if message is not None]

    def parse(self, raw: str | bytes) -> WireEvent:
        """What a message of the server means.

        Raises:
            ValueError: it is no JSON object, or what is in it is not what it should be.
        """
        message = read_object(raw)
        name = str(_first(message, self._type) or "")
        kind = self._kinds.get(name, "unknown")
        if kind == "error":
            return WireEvent(kind, name, str(_first(message, self._message) or "no message"))
        values = {key: _first(message, paths) for key, paths in self._values.items()}
        issued = {key: _issued(key, value) for key, value in values.items() if value is not None}
        slot = _first(message, self._fields["slot"])
        slot = slot if type(slot) is int else None
        if kind != "text":
            return WireEvent(kind, name, slot=slot, values=issued)
        text, tokens = (_first(message, self._fields[key]) for key in ("text", "token_ids"))
        if text is not None and not isinstance(text, str):
            raise ValueError(f"the text of {name} is a {type(text).__name__}")
        tokens = tokens if isinstance(tokens, list) else [] if tokens is None else [tokens]
        if any(type(token) is not int for token in tokens):
            raise ValueError(f"the token ids of {name} are not all whole numbers")
        return WireEvent(kind, name, text or "", tuple(tokens), slot, issued)


def _issued(name: str, value: Any) -> str | int:
    """A value that the server issued, fit to be sent back."""
    if type(value) not in (str, int) or len(str(value)) > MOST_VALUE_CHARACTERS:
        raise ValueError(f"the server issued a {name} that is no short text and no number")
    return value


def _placeholders(template: Any) -> set[str]:
    """Names of all placeholders in a list of messages."""
    if isinstance(template, Mapping):
        return set().union(*map(_placeholders, template.values())) if template else set()
    if isinstance(template, list):
        return set().union(*map(_placeholders, template)) if template else set()
    found = _PLACEHOLDER.match(template) if isinstance(template, str) else None
    return {found[1]} if found else set()


_MISSING = object()


def _fill(template: Any, values: Mapping[str, Any], issued: Collection[str]) -> Any:
    """A message with its values.

    A key without a value is left out; a message whose only values are missing is None, whatever
    the server issued for it.
    """
    names = _placeholders(template) - set(issued)
    if names and all(values[name] is None for name in names):
        return None
    filled = _filled(template, values)
    return None if filled is _MISSING else filled


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(template, Mapping):
        pairs = ((key, _filled(value, values)) for key, value in template.items())
        return {key: value for key, value in pairs if value is not _MISSING}
    if isinstance(template, list):
        return [item for part in template if (item := _filled(part, values)) is not _MISSING]
    found = _PLACEHOLDER.match(template) if isinstance(template, str) else None
    if not found:
        return template
    value = values[found[1]]
    return _MISSING if value is None else value


def _encode(message: Any) -> str | bytes:
    """A mapping becomes a JSON text frame; raw bytes become a binary frame."""
    return message if isinstance(message, bytes) else json.dumps(message, ensure_ascii=False)


def _first(message: Mapping[str, Any], paths: list[str]) -> Any:
    """The value at the first path (keys joined by dots) that leads somewhere."""
    for path in paths:
        value: Any = message
        for key in path.split("."):
            value = value.get(key) if isinstance(value, Mapping) else None
        if value is not None:
            return value
    return None
