"""Read the plain data in a pickle by interpreting its opcodes; nothing in it is ever called.

A pickle is a small program, and ``pickle.load`` runs it. This reader knows only the opcodes that
``torch.save`` (protocol 2) needs for dicts, lists, numbers and text; a tensor becomes `OPAQUE`.
"""

from __future__ import annotations

import pickletools
from collections.abc import Collection
from typing import Any

OPAQUE = object()
"""Stands for a tensor, a storage, or the function that would make one."""

_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_VALUES = {"BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"}
_EMPTY = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_MARK = object()


class UnfitPickle(ValueError):
    """The pickle holds more than plain data and tensors."""


def read_plain_pickle(data: bytes, names: Collection[str]) -> Any:
    """The pickle's object, with `OPAQUE` in the place of every tensor.

    Args:
        data: one whole pickle.
        names: ``module.name`` of everything it may mention (and that is not looked up).

    Raises:
        UnfitPickle: another name, another opcode, or a damaged pickle.
    """
    try:
        return _run(data, names)
    except UnfitPickle:
        raise
    except (ValueError, LookupError, TypeError, AttributeError) as error:
        raise UnfitPickle(f"it is damaged: {error}") from error


def _run(data: bytes, names: Collection[str]) -> Any:
    stack: list[Any] = []
    memo: dict[int, Any] = {}
    argument: Any
    for opcode, argument, _ in pickletools.genops(data):
        name = opcode.name
        if name in _VALUES:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _EMPTY:
            stack.append(_EMPTY[name]())
        elif name == "MARK":
            stack.append(_MARK)
        elif name in ("BINPUT", "LONG_BINPUT"):
            memo[argument] = stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            stack.append(memo[argument])
        elif name == "GLOBAL":
            stack.append(_named(argument.replace(" ", "."), names))
        elif name in ("BINPERSID", "REDUCE", "BUILD"):
            del stack[-1 if name == "BINPERSID" else -2 :]
            stack.append(OPAQUE)
        elif name in _TUPLES:
            stack[-_TUPLES[name] :] = [tuple(stack[-_TUPLES[name] :])]
        elif name == "TUPLE":
            stack.append(tuple(_since_mark(stack)))
        elif name in ("APPEND", "APPENDS"):
            items = [stack.pop()] if name == "APPEND" else _since_mark(stack)
            stack[-1].extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = [stack.pop(-2), stack.pop()] if name == "SETITEM" else _since_mark(stack)
            stack[-1].update(zip(items[::2], items[1::2], strict=True))
        elif name not in ("PROTO", "STOP"):
            raise UnfitPickle(f"it uses the opcode {name}, which plain data does not need")
    return stack.pop()


def _named(name: str, names: Collection[str]) -> object:
    if name not in names:
        raise UnfitPickle(f"it names {name}, which no tensor needs")
    return OPAQUE


def _since_mark(stack: list[Any]) -> list[Any]:
    """Take everything above the last mark, and the mark; looks at nothing below it."""
    start = len(stack) - 1
    while stack[start] is not _MARK:
        start -= 1
        if start < 0:
            raise LookupError("there is no mark")
    items = stack[start + 1 :]
    del stack[start:]
    return items
