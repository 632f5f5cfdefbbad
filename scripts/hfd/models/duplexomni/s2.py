"""The second system (S2): a thinking layer beside the model, on an OpenAI-compatible endpoint.

The thinker starts it with ``[THINK]`` and stops it with ``[WAIT]``. It reads the conversation and
the pictures so far and answers with commands in 【brackets】, which are handed to the thinker one
per slice, with a seeded gap between them. It works in real time, so it needs the arrival clock.
"""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import os
import random
import re
import socket
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

MAX_PICTURES = 50
GAP_S = (0.5, 1.0)
"""Media time between two commands, drawn evenly."""
COMMAND = re.compile(r"【[^】]*】")
SYSTEM_PROMPT = (
    "你是视频通话中的思考层，为正在和用户说话的系统提供话术。根据对话和看到的画面，"
    "给出简短、口语化、可以直接说出口的句子，每句用【】括起来，最多两句。"
    "只说画面里已经出现的内容，不重复说过的话；用户用什么语言提问，就用什么语言回答。"
)


@dataclass(frozen=True)
class S2Settings:
    """Where S2 runs and how it is asked.

    Attributes:
        url: base of an OpenAI-compatible API, ``http(s)://host[:port]/v1``.
        model: its model, which must take pictures.
        api_key_env: environment variable that holds the key; the key is never recorded.
        timeout_s: longest silence of the endpoint.
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
        self._history: list[dict[str, Any]] = [{"role": "system", "content": SYSTEM_PROMPT}]
        self._talk: list[tuple[str, str]] = []
        self._pictures: deque[bytes] = deque(maxlen=MAX_PICTURES)
        self._commands: deque[str] = deque()
        self._next_slice = 0.0
        self._lock = threading.Lock()
        self._running: _Thought | None = None
        self._failure: HfdError | None = None

    def saw(self, jpeg: bytes) -> None:
        """Remember a picture for the next thought."""
        self._pictures.append(jpeg)

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
        """The history, with the pictures so far attached to this request only."""
        if not self._pictures:
            return list(self._history)
        shown: list[dict[str, Any]] = [
            {
                "type": "image_url",
                "image_url": {"url": f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"},
            }
            for jpeg in self._pictures
        ]
        shown.append({"type": "text", "text": "以上是到目前为止的视频画面，按时间排列。"})
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
        self._connection = _connect(settings)
        self._socket: socket.socket | None = None
        self._cancelled = False

    def cancel(self) -> None:
        """Break the connection; the thread ends by itself."""
        self._cancelled = True
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def run(self) -> None:
        given = 0
        try:
            for piece in self._pieces():
                self.said += piece
                for match in COMMAND.finditer(self.said, given):
                    self._owner._give(self, match[0])
                    given = match.end()
        except (OSError, http.client.HTTPException, ValueError, LookupError) as error:
            failure = HfdError(f"S2 failed: {error}", remedy="Mend the endpoint, or set s2: null")
            self._owner._fail(self, failure)
        finally:
            self._connection.close()

    def _pieces(self) -> Iterator[str]:
        """The answer's words, as the server sends them (server-sent events)."""
        headers = {"Content-Type": "application/json"}
        if (key := self._settings.key()) is not None:
            headers["Authorization"] = f"Bearer {key}"
        path = urlsplit(self._settings.url).path.rstrip("/") + "/chat/completions"
        body = json.dumps(self._payload).encode()
        self._connection.connect()
        self._socket = self._connection.sock
        if self._cancelled:
            return
        self._connection.request("POST", path, body, headers)
        answer = self._connection.getresponse()
        if answer.status != 200:
            raise ValueError(f"{answer.status} {answer.read(500).decode('utf-8', 'replace')}")
        while line := answer.readline():
            data = line.decode("utf-8").strip()
            if not data.startswith("data:") or (data := data[5:].strip()) == "[DONE]":
                continue
            choices = json.loads(data).get("choices") or [{}]
            if content := choices[0].get("delta", {}).get("content"):
                yield content


def _connect(settings: S2Settings) -> http.client.HTTPConnection:
    parts = urlsplit(settings.url)
    secure = parts.scheme == "https"
    connection = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    return connection(parts.hostname or "", parts.port, timeout=settings.timeout_s)
