"""What a client says, checked: every message is understood, or refused by a named error.

Parsing and checking run outside the event loop: a megabyte of token ids holds up nobody else.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from hfd.models.tts import protocol
from hfd.models.tts.speech import Manner, Voice


class ProtocolError(Exception):
    """The client said something that the protocol does not know; `code` is the error's name."""

    def __init__(self, code: str, message: str) -> None:
        self.code = code
        super().__init__(message)


@dataclass(frozen=True)
class Choice:
    """What a session has chosen.

    Attributes:
        manner: how its utterances are spoken.
        emit_every: frames of the first chunks; the last of them holds for all others.
        emit_shown: the same as the client said it.
    """

    manner: Manner
    emit_every: tuple[int, ...]
    emit_shown: int | list[int]


def parse(raw: str | bytes) -> dict[str, Any]:
    """A message as an object with a type.

    Raises:
        ProtocolError: ``bad_message``.
    """
    try:
        message = json.loads(raw) if isinstance(raw, str) else None
    except (ValueError, RecursionError):  # no JSON, numbers of thousands of digits, deep nesting
        message = None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ProtocolError("bad_message", "every message is a JSON object with a type")
    return message


def read_config(
    config: dict[str, Any],
    speakers: tuple[str, ...],
    languages: tuple[str, ...],
    emit_every: tuple[int, ...],
) -> Choice:
    """The choice in a ``session.config``; what it leaves out is the first or given one.

    Raises:
        ProtocolError: ``config_first``, ``unknown_speaker``, ``unknown_language``, ``bad_seed``,
            ``bad_emit_every_frames``.
    """
    if config["type"] != protocol.CONFIG:
        raise ProtocolError("config_first", "the first message must be session.config")
    manner = Manner(
        _choice(config, "speaker", speakers),
        _choice(config, "language", languages),
        _integer(config, "seed", 0, 0, protocol.MAX_SEED),
    )
    given = config.get("emit_every_frames")
    if given is None:
        given = emit_every[0] if len(emit_every) == 1 else list(emit_every)
    sizes = given if isinstance(given, list) else [given]
    if not 1 <= len(sizes) <= protocol.MAX_EMIT_FRAMES or not all(
        type(size) is int and 1 <= size <= protocol.MAX_EMIT_FRAMES for size in sizes
    ):
        raise ProtocolError(
            "bad_emit_every_frames",
            f"emit_every_frames must be 1 to {protocol.MAX_EMIT_FRAMES}, or a list of such numbers",
        )
    return Choice(manner, tuple(sizes), given)


def read_seq(message: dict[str, Any], least: int) -> int:
    """Number of a piece of text, growing.

    Raises:
        ProtocolError: ``bad_seq``.
    """
    return _integer(message, "seq", None, least, protocol.MAX_SEQ)


def read_tokens(message: dict[str, Any], voice: Voice) -> list[int]:
    """Text tokens of an ``input.text``.

    Raises:
        ProtocolError: ``bad_text``.
    """
    tokens, text = message.get("token_ids"), message.get("text")
    if tokens is None and isinstance(text, str):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise ProtocolError("bad_text", f"the text is no Unicode: {error.reason}") from error
        tokens = voice.tokens(text)
    if not isinstance(tokens, list) or not all(
        type(token) is int and 0 <= token < voice.text_vocabulary for token in tokens
    ):
        raise ProtocolError("bad_text", "input.text needs text (a string) or token_ids")
    return tokens


def _choice(config: dict[str, Any], key: str, known: tuple[str, ...]) -> str:
    value = config.get(key) or known[0]
    if not isinstance(value, str) or value.lower() not in known:
        shown = repr(value)[:60]
        raise ProtocolError(f"unknown_{key}", f"{key} {shown} is not one of {sorted(known)}")
    return value.lower()


def _integer(message: dict[str, Any], key: str, default: int | None, least: int, most: int) -> int:
    value = message.get(key, default)
    if type(value) is not int or not least <= value <= most:
        raise ProtocolError(f"bad_{key}", f"{key} must be an integer from {least} to {most}")
    return value
