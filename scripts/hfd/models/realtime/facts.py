"""What a server's message says, in words that all dialects share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Opened:
    """The session is open; `session` is how the server echoes it (may be empty)."""

    session: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class AnswerBegan:
    """The server has begun an answer."""

    answer: str


@dataclass(frozen=True)
class AnswerEnded:
    """Nothing more comes of an answer.

    Attributes:
        answer: its id.
        status: ``completed``, ``cancelled``, ``incomplete`` (a limit of the server) or ``failed``.
        reason: the server's own words for it.
        usage: what the server counted (tokens, seconds), as it tells it.
    """

    answer: str
    status: Literal["completed", "cancelled", "incomplete", "failed"] = "completed"
    reason: str = ""
    usage: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sound:
    """A piece of the voice, encoded as the dialect's `Traits.codec` says."""

    data: bytes
    answer: str = ""
    item: str = ""


@dataclass(frozen=True)
class Words:
    """A piece of the assistant's text; new characters only.

    Raises:
        TypeError: the server sent something else in its place.
    """

    text: str
    answer: str = ""

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"a {type(self.text).__name__} where words were due")


@dataclass(frozen=True)
class UserWords:
    """What the server itself understood of the user.

    Raises:
        TypeError: the server sent something else in its place.
    """

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise TypeError(f"a {type(self.text).__name__} where words were due")


@dataclass(frozen=True)
class Decision:
    """The model, or the voice activity detection in front of it, listens or speaks."""

    kind: Literal["listen", "speak"]
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class UserSpeech:
    """The server hears that the user begins or stops to speak (`detail`: its own times)."""

    began: bool
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Interrupted:
    """The server has cut its answer because of the user; what was not played is to be dropped."""

    answer: str = ""


@dataclass(frozen=True)
class Processed:
    """The server has taken in unit `index` and all that came of it was sent before this."""

    index: int
    detail: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Usage:
    """What the session has used so far, as the server tells it (a total, no difference)."""

    values: Mapping[str, Any]


@dataclass(frozen=True)
class GoingAway:
    """The server will end the session in `seconds`, whatever we do."""

    seconds: float


@dataclass(frozen=True)
class Failed:
    """The server reports an error.

    Attributes:
        code: its name for it.
        text: its words.
        fatal: whether the sample is over; an error about a cancel that came too late is not.
        kind: ``refused``, ``busy`` or ``error`` (`hfd.models.sockets.failures`).
    """

    code: str
    text: str
    fatal: bool = True
    kind: Literal["refused", "busy", "error"] = "error"


@dataclass(frozen=True)
class Finished:
    """The session is over in order."""

    reason: str = "server_done"


@dataclass(frozen=True)
class Other:
    """A message without meaning for us; counted by name."""

    name: str


Fact = (
    Opened
    | AnswerBegan
    | AnswerEnded
    | Sound
    | Words
    | UserWords
    | Decision
    | UserSpeech
    | Interrupted
    | Processed
    | Usage
    | GoingAway
    | Failed
    | Finished
    | Other
)
