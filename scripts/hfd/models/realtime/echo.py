"""The session as a server echoes it: what differs from what was asked for, and what is recorded."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OWN = ("ref_audio", "client_secret", "resume_token")
"""Keys that are secret, or that we sent ourselves and that are large."""
_MISSING = object()


def differences(session: Mapping[str, Any], expected: Mapping[str, Any]) -> list[str]:
    """What the server says that it will do other than asked; keys that it does not echo are fine.

    Args:
        session: as echoed.
        expected: values by dotted key.
    """
    found = {path: _at(session, path) for path in expected}
    return [
        f"{path} = {found[path]!r}, not {value!r}"
        for path, value in expected.items()
        if found[path] is not _MISSING and not _same(found[path], value)
    ]


def _at(session: Mapping[str, Any], path: str) -> Any:
    """The value under dotted keys, or `_MISSING`."""
    value: Any = session
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return _MISSING
        value = value[key]
    return value


def _same(found: Any, wanted: Any) -> bool:
    """Whether a server's value is what was asked for; mappings may have further keys."""
    if isinstance(wanted, Mapping) and isinstance(found, Mapping):
        return all(key in found and _same(found[key], value) for key, value in wanted.items())
    if isinstance(wanted, float) and isinstance(found, int | float):
        return abs(found - wanted) < 1e-6
    return bool(found == wanted)


def numbers(usage: Mapping[str, Any], place: str = "") -> dict[str, float]:
    """All numbers of a nested object by dotted name."""
    out: dict[str, float] = {}
    for key, value in usage.items():
        name = f"{place}{key}"
        if isinstance(value, Mapping):
            out |= numbers(value, f"{name}.")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            out[name] = value
    return out


def shown(session: Mapping[str, Any]) -> dict[str, Any]:
    """The echoed session as it may be recorded."""
    return {
        key: shown(value) if isinstance(value, Mapping) else value
        for key, value in session.items()
        if key not in _OWN
    }
