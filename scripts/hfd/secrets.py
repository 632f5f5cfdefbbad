"""What must never be written down: tokens in URLs, in servers' environments, under telling names.

Secrets belong into environment variables that the settings only name. Where one stands in the
settings all the same, it reaches the model and nothing that is kept: no provenance, log, record of
raw frames, or fingerprint.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from hfd.files import sha256_bytes

HIDDEN = "<hidden>"
_NAME = re.compile(
    r"(^|[_\-.])(token|secret|password|passwd|pwd|api_?key|access_?key|auth|authorization"
    r"|credentials?|cookie|bearer|signature|sig|key)$",
    re.IGNORECASE,
)
_NAMES_A_VARIABLE = re.compile(r"_(env|variable)$", re.IGNORECASE)
_ENVIRONMENTS = ("env", "environment", "headers")
_PLAIN_QUERY = (
    "model",
    "api-version",
    "voice",
    "language",
    *("autostart", "duplex"),  # vLLM-Omni
    *("voice_prompt", "text_prompt"),  # PersonaPlex
)
_URL = re.compile(r"\b(?P<scheme>[a-z][a-z0-9+.\-]*://)(?P<user>[^/?#\s@\"']*@)?", re.IGNORECASE)
_QUERY = re.compile(r"(?P<name>[?&][^=&#\s\"']+=)(?P<value>[^&#\s\"']*)")
_HEADER = re.compile(r"(?i)\b(bearer|basic)\s+[A-Za-z0-9._~+/=\-]{8,}")


def is_secret(name: str) -> bool:
    """Whether what stands under this name is a secret; the name of a variable is none."""
    snake = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return bool(_NAME.search(snake)) and not _NAMES_A_VARIABLE.search(name)


def without_secrets(value: Any, name: str = "") -> Any:
    """Settings as they may be kept.

    Args:
        value: JSON value: a mapping, a list, or what lies in one.
        name: the key it stands under.

    Returns:
        The same shape. Under a secret's name, and for the query of a URL (but model, version,
        voice and the like) and its user part, stands ``<hidden>``; the values of environments and
        headers are known by the first 12 digits of their SHA-256, so that a change is noticed.
    """
    if isinstance(value, Mapping):
        if name in _ENVIRONMENTS:
            return {str(key): _variable(str(key), item) for key, item in value.items()}
        return {str(key): without_secrets(item, str(key)) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [without_secrets(item, name) for item in value]
    if isinstance(value, str):
        return HIDDEN if is_secret(name) and value else scrub(value)
    return value


def scrub(text: str, values: Iterable[str] = ()) -> str:
    """A text as it may be printed: no user part and no telling query in its URLs, no bearer.

    Args:
        text: what is to be printed or recorded.
        values: secrets that are known by themselves, as read from environment variables.
    """
    for value in values:
        if value:
            text = text.replace(value, HIDDEN)
    if "://" in text:
        text = _URL.sub(lambda m: m["scheme"] + (f"{HIDDEN}@" if m["user"] else ""), text)
        text = _QUERY.sub(_query, text)
    return _HEADER.sub(rf"\1 {HIDDEN}", text)


def _query(match: re.Match[str]) -> str:
    plain = match["name"][1:-1].lower() in _PLAIN_QUERY
    value = match["value"]
    return match["name"] + (value if plain or not value else HIDDEN)


def _variable(name: str, value: Any) -> str:
    return HIDDEN if is_secret(name) else f"sha256:{sha256_bytes(str(value).encode())[:12]}"


def secret_values(names: Iterable[str]) -> list[str]:
    """What the environment variables of these names hold."""
    return [os.environ[name] for name in names if os.environ.get(name)]
