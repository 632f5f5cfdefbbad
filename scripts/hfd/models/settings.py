"""Settings of a model: a frozen dataclass that says itself which values fit.

A field's type is its rule: ``int``, ``float``, ``str``, ``bool``, ``... | None``, ``Literal``,
``list``, ``dict``, another such dataclass, or ``Annotated`` with a `Range`. No default: required.
"""

from __future__ import annotations

import math
import types
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import MISSING, dataclass, fields, is_dataclass
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from hfd.errors import HfdError

T = TypeVar("T")


@dataclass(frozen=True)
class Range:
    """The smallest and the largest number that fits; for use in ``Annotated``."""

    least: float
    most: float


Share = Annotated[float, Range(0.0, 1.0)]
"""A part of a whole."""


def make_settings(kind: type[T], given: Any, place: str = "settings", **made: Any) -> T:
    """Make a settings object from what a user wrote; nothing is converted or guessed.

    Args:
        kind: a dataclass as this module's docstring describes it.
        given: a mapping with a value for some of its fields.
        place: name of the mapping in messages.
        made: fields that the user cannot write, with their values.

    Raises:
        HfdError: no mapping, unknown or missing key, wrong type, or a value outside of its range
            or choices; its field is ``<place>.<key>``.
    """
    if not isinstance(given, Mapping):
        raise wrong_setting(place, given, "Write its keys, each with a value")
    own: Any = kind  # a dataclass, which no type says
    known = {field.name: field for field in fields(own) if field.name not in made}
    for key in given:
        if key not in known:
            raise HfdError(
                "is no setting", field=f"{place}.{key}", remedy=f"Known: {', '.join(known)}"
            )
    for key, field in known.items():
        if key not in given and field.default is MISSING and field.default_factory is MISSING:
            raise HfdError("is missing", field=f"{place}.{key}", remedy="Write a value for it")
    hints = get_type_hints(kind, include_extras=True)
    values = {key: _fitting(value, hints[key], f"{place}.{key}") for key, value in given.items()}
    return kind(**values, **made)


def wrong_setting(place: str, value: Any, remedy: str) -> HfdError:
    """The error for a value that does not fit; `place` is its key with all keys above it."""
    return HfdError(f"is {value!r}", field=place, remedy=remedy)


def _fitting(value: Any, hint: Any, place: str) -> Any:
    """The value, or the settings object made from it."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        _fitting(value, parts[0], place)
        least, most = parts[1].least, parts[1].most
        if not least <= value <= most:
            raise wrong_setting(place, value, f"Write a number from {least:g} to {most:g}")
    elif origin in (types.UnionType, Union):
        return _fitting_one_of(value, parts, place)
    elif origin is list and isinstance(value, list):
        return [_fitting(item, parts[0], f"{place}[{n}]") for n, item in enumerate(value)]
    elif origin is Literal:
        if value not in parts:
            raise wrong_setting(place, value, f"Write one of {', '.join(parts)}")
    elif isinstance(hint, type) and is_dataclass(hint) and not isinstance(value, hint):
        return make_settings(hint, value, place)
    elif not _is_a(value, origin or hint):
        raise wrong_setting(place, value, f"Write {_NAMES.get(origin or hint, hint)}")
    return value


def _fitting_one_of(value: Any, kinds: tuple[Any, ...], place: str) -> Any:
    """The value under the first of several types that it fits; the last one's error otherwise."""
    if value is None and types.NoneType in kinds:
        return None
    *others, last = (kind for kind in kinds if kind is not types.NoneType)
    for kind in others:
        with suppress(HfdError):
            return _fitting(value, kind, place)
    return _fitting(value, last, place)


_NAMES = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "keys, each with a value",
}


def _is_a(value: Any, kind: Any) -> bool:
    if kind is Any:
        return True
    if isinstance(value, bool) and kind is not bool:
        return False
    if kind is float:
        return isinstance(value, int | float) and math.isfinite(value)
    return isinstance(value, kind)
