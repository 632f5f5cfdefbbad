"""What the thinker answers for one slice: a small dict, written as JSON or as a Python literal."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

KEYS = ("tts_control", "system2_control", "asr", "tts")
"""What the model was trained to write, in this order."""

_KEY = "|".join(KEYS)
_FIELD = re.compile(
    rf"""['"](?P<key>{_KEY})['"]\s*:\s*(?P<quote>['"])(?P<value>.*?)(?P=quote)"""
    rf"""\s*(?=,\s*['"](?:{_KEY})['"]\s*:|\}}|$)""",
    re.DOTALL,
)
"""One key with its text; ends at a quote that another key, a brace or the end follows, so that
an apostrophe inside the words does not end them."""


@dataclass(frozen=True)
class Reply:
    """One slice's decision.

    Attributes:
        tts: what the assistant says in this slice (may be empty).
        asr: what it understood of the user.
        stop, think, wait: the control marks ``[STOP]``, ``[THINK]``, ``[WAIT]``.
        form: how the text had to be read; ``unreadable`` means that nothing was taken from it.
    """

    tts: str = ""
    asr: str = ""
    stop: bool = False
    think: bool = False
    wait: bool = False
    form: Literal["json", "literal", "fields", "unreadable"] = "unreadable"


def parse_reply(text: str) -> Reply:
    """Read the thinker's text; never fails and never invents a word.

    Code fences and whatever stands around the outer braces are left out. A text that is neither
    JSON nor a Python literal (an apostrophe inside single quotes, an answer cut short) is searched
    for the four known keys.
    """
    body = _braces(text)
    for form, read in (("json", json.loads), ("literal", ast.literal_eval), ("fields", _fields)):
        try:
            found = read(body)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(found, Mapping) and found.keys() & set(KEYS):
            return _reply(found, form)
    return Reply()


def _braces(text: str) -> str:
    """From the first brace to the last; to the end of the text if none closes."""
    start, end = text.find("{"), text.rfind("}")
    return text[start : end + 1] if 0 <= start < end else text[max(start, 0) :]


def _fields(body: str) -> dict[str, str]:
    return {match["key"]: match["value"] for match in _FIELD.finditer(body)}


def _reply(found: Mapping[str, Any], form: Any) -> Reply:
    tts_control, system2_control, asr, tts = (_text(found.get(key)) for key in KEYS)
    return Reply(
        tts=tts,
        asr=asr,
        stop="[STOP]" in tts_control,
        think="[THINK]" in system2_control,
        wait="[WAIT]" in system2_control and "[THINK]" not in system2_control,
        form=form,
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
