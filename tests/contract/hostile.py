"""A client of a socket or HTTP server, as the hostile peers meet it.

A model's ``tests/models/<model>/hostile.py`` has a list ``TARGETS``; test_hostile.py does the rest.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from websockets.asyncio.server import ServerConnection

from tests.fakes.hostile import HTTP_ATTACKS, SOCKET_ATTACKS, HttpAttack, Message, SocketAttack


@dataclass(frozen=True)
class Target:
    """One connection of one model.

    Attributes:
        name: what the tests are called.
        module: the model, as in config/models.yaml.
        under_attack: given the attack and an empty folder, starts the hostile server and every
            honest one the model needs, and gives its settings, with limits of a second or so.
        attacks: what is done to it, by name.
        harmless: attacks after which a result is no mistake (silence from a model that may be
            silent).
        media_s: length of the file.
        limit_s: how long a sample may take to fail.
        marks: pytest markers.
    """

    name: str
    module: str
    under_attack: Callable[[Any, Path], AbstractContextManager[Mapping[str, Any]]]
    attacks: Mapping[str, HttpAttack | SocketAttack]
    harmless: tuple[str, ...] = ()
    media_s: float = 0.6
    limit_s: float = 10.0
    marks: tuple[pytest.MarkDecorator, ...] = ()


Greet = Callable[[ServerConnection], Awaitable[None]]

__all__ = ["HTTP_ATTACKS", "SOCKET_ATTACKS", "Greet", "Message", "Target"]
