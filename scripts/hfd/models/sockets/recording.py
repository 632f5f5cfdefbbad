"""Raw messages of a sample's sockets as they went by (``record: true``), without their secrets."""

from __future__ import annotations

import base64
import json
import queue
import re
import threading
import time
from collections.abc import Iterable
from pathlib import Path

from hfd.secrets import HIDDEN, scrub

RAW_FRAMES = "raw_frames.jsonl"
SECRET_FIELDS = (
    "api_key",
    "authorization",
    "client_secret",
    "handle",
    "new_handle",
    "newHandle",
    "resume_token",
    "token",
)
"""JSON fields whose text never leaves the process, whichever server sends them."""
_FIELD = re.compile(rf'("(?:{"|".join(SECRET_FIELDS)})"\s*:\s*)"(?:[^"\\]|\\.)*"')


class Secrets:
    """Values that may stand in no file, log or message: keys read from the environment."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        self._values = sorted({value for value in values if value}, key=len, reverse=True)

    def hide(self, text: str) -> str:
        """The text without secret values, secret fields of JSON, and secrets in URLs."""
        return _FIELD.sub(rf'\1"{HIDDEN}"', scrub(text, self._values))

    def hide_bytes(self, data: bytes) -> bytes:
        """The same for a binary message; only values can be found in it."""
        for value in self._values:
            data = data.replace(value.encode(), HIDDEN.encode())
        return data


class Recording:
    """One JSON line a message: seconds since the sample was opened, peer, direction, content.

    Lines are written by a thread of their own, so that no socket ever waits for the disk.
    """

    def __init__(self, folder: Path | None, secrets: Secrets | None = None) -> None:
        """Record into `folder`, or not at all if it is None."""
        self._secrets = secrets or Secrets()
        self._began = time.monotonic()
        self._waiting: queue.SimpleQueue[tuple[float, str, str, str | bytes] | None] | None = None
        if folder is not None:
            self._waiting = queue.SimpleQueue()
            self._writer = threading.Thread(
                target=self._write, args=(folder / RAW_FRAMES, self._waiting), name="raw-frames"
            )
            self._writer.start()

    def add(self, peer: str, direction: str, raw: str | bytes) -> None:
        """Record one message; text as it is, bytes that are no JSON text as base64."""
        if self._waiting is not None:
            self._waiting.put((time.monotonic() - self._began, peer, direction, raw))

    def close(self) -> None:
        """Write what is waiting; nothing may be added afterwards."""
        if self._waiting is not None:
            self._waiting.put(None)
            self._writer.join()
            self._waiting = None

    def _write(
        self, path: Path, waiting: queue.SimpleQueue[tuple[float, str, str, str | bytes] | None]
    ) -> None:
        with path.open("w", encoding="utf-8") as lines:
            while (item := waiting.get()) is not None:
                seconds, peer, direction, raw = item
                line = {"t": round(seconds, 6), "peer": peer, "dir": direction, **self._shown(raw)}
                lines.write(json.dumps(line, ensure_ascii=False) + "\n")

    def _shown(self, raw: str | bytes) -> dict[str, str]:
        if isinstance(raw, bytes):
            if not raw.lstrip().startswith(b"{"):
                return {"base64": base64.b64encode(self._secrets.hide_bytes(raw)).decode()}
            raw = raw.decode("utf-8", "replace")  # Gemini sends its JSON as bytes
        return {"text": self._secrets.hide(raw)}
