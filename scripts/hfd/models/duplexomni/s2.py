"""The second system (S2): a thinking layer beside the model, on an OpenAI-compatible endpoint.

The thinker starts it with ``[THINK]`` and stops it with ``[WAIT]``. It reads the conversation and
the frames so far and answers with commands in 【brackets】, which are handed to the thinker one
per slice, with a seeded gap between them. It works in real time, so it needs the arrival clock.
"""

from __future__ import annotations

import base64
import json
import os
import random
import re
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from hfd.errors import HfdError
from hfd.files import sha256_bytes
from hfd.media_time import SAMPLE_RATE
from hfd.models.duplexomni.context import SLICE_SAMPLES
from hfd.models.duplexomni.prompts import S2_AFTER_FRAMES, S2_SYSTEM_PROMPT
from hfd.models.http import HttpServer, ServerFailed

MAX_FRAMES = 50
GAP_S = (0.5, 1.0)
"""Media time between two commands, drawn evenly."""
COMMAND = re.compile(r"【[^】]*】")
MOST_ANSWER_BYTES = 2**20
"""A thought of 2048 tokens is about 600 kB of events."""
MOST_LINE_BYTES = 2**16
_MALFORMED = (ValueError, LookupError, TypeError, AttributeError, RecursionError)
"""What reading an answer that is no chat completion may raise."""


@dataclass(frozen=True)
class S2Settings:
    """Where S2 runs and how it is asked.

    Attributes:
        url: base of an OpenAI-compatible API, ``http(s)://host[:port]/v1``.
        model: its model, which must take video frames.
        api_key_env: environment variable that holds the key; the key is never recorded.
        timeout_s: longest time of one whole thought.
        request: more fields of the request (sampling).
    """

    url: str
    model: str
    api_key_env: str | None = None
    timeout_s: float = 60.0
    request: dict[str, Any] = field(
        default_factory=lambda: {"temperature": 1.0, "max_tokens": 2048}
    )

    @property
    def identity(self) -> dict[str, Any]:
        """What is recorded: the model and a hash of the endpoint's host, no address, no key."""
        host = urlsplit(self.url).netloc.rpartition("@")[2]
        return {"model": self.model, "host_sha256": sha256_bytes(host.encode())[:16]}

    def key(self) -> str | None:
        """The key from the environment.

        Raises:
            HfdError: the variable is named but not set.
        """
        if self.api_key_env is None:
            return None
        try:
            return os.environ[self.api_key_env]
        except KeyError as error:
            raise HfdError(
                f"the environment variable {self.api_key_env} is not set",
                field="settings.s2.api_key_env",
            ) from error


class System2:
    """S2 of one sample. Called from the thinker's thread; answers arrive in a thread of its own."""

    def __init__(self, settings: S2Settings, seed: int) -> None:
        self._settings = settings
        self._gaps = random.Random(seed)
        self._seed = seed
        self._history: list[dict[str, Any]] = [{"role": "system", "content": S2_SYSTEM_PROMPT}]
        self._talk: list[tuple[str, str]] = []
        self._frames: deque[bytes] = deque(maxlen=MAX_FRAMES)
        self._commands: deque[str] = deque()
        self._next_slice = 0.0
        self._lock = threading.Lock()
        self._running: _Thought | None = None
        self._failure: HfdError | None = None

    def saw(self, jpeg: bytes) -> None:
        """Remember a video frame for the next thought."""
        self._frames.append(jpeg)

    def heard(self, who: str, words: str) -> None:
        """Add words of ``User`` or ``Agent`` to what the next thought is told."""
        if not words:
            return
        if self._talk and self._talk[-1][0] == who:
            words = self._talk.pop()[1] + words
        self._talk.append((who, words))

    def think(self) -> None:
        """Start thinking about all that was said; a thought in progress ends here."""
        self.wait()
        if self._talk:
            told = "\n".join(f"[{who}]: {words}" for who, words in self._talk)
            self._history.append({"role": "user", "content": told})
            self._talk.clear()
        thought = _Thought(self, self._settings, self._messages(), self._seed)
        with self._lock:
            self._running = thought
        thought.start()

    def wait(self) -> None:
        """Stop thinking at once; commands that were already given stay."""
        with self._lock:
            thought, self._running = self._running, None
        if thought is not None:
            thought.cancel()
            if thought.said:
                self._history.append({"role": "assistant", "content": thought.said})

    def take(self, slice_index: int) -> str:
        """The command for this slice, or an empty text.

        Raises:
            HfdError: the endpoint failed since the last call.
        """
        with self._lock:
            if self._failure is not None:
                raise self._failure
            if not self._commands or slice_index < self._next_slice:
                return ""
            gap_slices = self._gaps.uniform(*GAP_S) * SAMPLE_RATE / SLICE_SAMPLES
            self._next_slice = slice_index + gap_slices
            return self._commands.popleft()

    def _messages(self) -> list[dict[str, Any]]:
        """The history, with the video frames so far attached to this request only."""
        if not self._frames:
            return list(self._history)
        shown: list[dict[str, Any]] = [
            {
                "type": "image_url",
                "image_url": {"url": f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"},
            }
            for jpeg in self._frames
        ]
        shown.append({"type": "text", "text": S2_AFTER_FRAMES})
        return [*self._history, {"role": "user", "content": shown}]

    def _give(self, thought: _Thought, command: str) -> None:
        with self._lock:
            if thought is self._running:  # a thought that was stopped gives nothing more
                self._commands.append(command)

    def _fail(self, thought: _Thought, error: HfdError) -> None:
        with self._lock:
            if thought is self._running:
                self._failure = error


class _Thought(threading.Thread):
    """One streamed request; gives commands as soon as their closing bracket arrives."""

    def __init__(
        self, owner: System2, settings: S2Settings, messages: list[dict[str, Any]], seed: int
    ) -> None:
        super().__init__(name="s2", daemon=True)
        self.said = ""
        self._owner = owner
        self._settings = settings
        self._payload = {
            **settings.request,
            "model": settings.model,
            "messages": messages,
            "stream": True,
            "seed": seed,
        }
        parts = urlsplit(settings.url)
        self._path = parts.path.rstrip("/") + "/chat/completions"
        self._server = HttpServer(
            "S2 endpoint",
            f"{parts.scheme}://{parts.netloc}",
            settings.timeout_s,
            MOST_ANSWER_BYTES,
        )
        self._cancelled = threading.Event()

    def cancel(self) -> None:
        """Break the connection; the thread ends by itself."""
        self._cancelled.set()
        self._server.abort()

    def run(self) -> None:
        given = 0
        try:
            for piece in self._pieces():
                self.said += piece
                if "】" not in piece:
                    continue
                for match in COMMAND.finditer(self.said, given):
                    self._owner._give(self, match[0])
                    given = match.end()
        except (HfdError, *_MALFORMED) as error:
            failure = HfdError(f"S2 failed: {error}", remedy="Mend the endpoint, or set s2: null")
            self._owner._fail(self, failure)

    def _pieces(self) -> Iterator[str]:
        """The answer's words, as the server sends them (server-sent events)."""
        headers = {"Content-Type": "application/json"}
        if (key := self._settings.key()) is not None:
            headers["Authorization"] = f"Bearer {key}"
        if self._cancelled.is_set():
            return
        body = json.dumps(self._payload).encode()
        with self._server.stream("POST", self._path, body, headers=headers) as reply:
            if reply.status != 200:
                words = b"".join(reply.pieces())[:500].decode("utf-8", "replace")
                raise ServerFailed(f"{reply.status} {words}")
            for line in _lines(reply.pieces()):
                data = line.decode("utf-8").strip()
                if not data.startswith("data:") or (data := data[5:].strip()) == "[DONE]":
                    continue
                choices = json.loads(data).get("choices") or [{}]
                if isinstance(content := choices[0].get("delta", {}).get("content"), str):
                    content.encode()  # raises what could be sent to nobody (lone surrogates)
                    yield content


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Whole lines out of a byte stream.

    Raises:
        ValueError: a line of more than `MOST_LINE_BYTES`.
    """
    waiting = bytearray()
    for piece in pieces:
        waiting += piece
        *lines, rest = waiting.split(b"\n")
        yield from map(bytes, lines)
        waiting = rest
        if len(waiting) > MOST_LINE_BYTES:
            raise ValueError(f"a line of more than {MOST_LINE_BYTES} bytes")
