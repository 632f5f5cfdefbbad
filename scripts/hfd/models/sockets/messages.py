"""JSON messages of servers: whatever one sends ends in a value or in a `ValueError`."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NoReturn

MOST_NAMES = 50
MOST_NAME_CHARACTERS = 80
OTHERS = "(others)"


def read_object(raw: str | bytes) -> dict[str, Any]:
    """The JSON object in a text message.

    Raises:
        ValueError: a binary message, no JSON object, nesting beyond what can be read, a number
            that is none (NaN), or half a character (a lone surrogate) in a text.
    """
    if isinstance(raw, bytes):
        raise ValueError(f"a binary message of {len(raw)} bytes where a JSON object was due")
    try:
        found = json.loads(raw, parse_constant=_no_number)
    except RecursionError:
        raise ValueError("a message that is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError(f"a JSON {type(found).__name__} where an object was due")
    if "\\ud" in raw or "\\uD" in raw:  # only an escape can make a surrogate
        _refuse_surrogates(found)
    return found


def whole_number(message: dict[str, Any], key: str) -> int:
    """A count or an index that a message must have: no float, no mark, not negative.

    Raises:
        ValueError: it is missing or something else.
    """
    value = message.get(key)
    if type(value) is not int or not 0 <= value < 2**53:
        raise ValueError(f"{key} is {value!r:.40}, not a whole number")
    return value


class Names:
    """How often each of a server's events came, by name; a server cannot make it grow for ever."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, name: str) -> None:
        """Count an event; a name that is no text is counted as what it is."""
        short = str(name)[:MOST_NAME_CHARACTERS]
        if short not in self._counts and len(self._counts) >= MOST_NAMES:
            short = OTHERS
        self._counts[short] += 1

    def __bool__(self) -> bool:
        return bool(self._counts)

    def record(self) -> dict[str, int]:
        """Counts by name."""
        return dict(self._counts)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number in JSON")


def _refuse_surrogates(found: dict[str, Any]) -> None:
    try:
        json.dumps(found, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        raise ValueError("a text with half a character (a lone surrogate)") from None
