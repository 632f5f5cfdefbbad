"""Raw frames of both sockets as they went by, for mending a wire file (``record: true``)."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path

RAW_FRAMES = "raw_frames.jsonl"


class Recording:
    """One JSON line a frame: seconds since the sample was opened, peer, direction, content."""

    def __init__(self, folder: Path | None) -> None:
        """Record into `folder`, or not at all if it is None."""
        self._lines = (folder / RAW_FRAMES).open("w", encoding="utf-8") if folder else None
        self._began = time.monotonic()

    def add(self, peer: str, direction: str, raw: str | bytes) -> None:
        """Write one frame; text as it is, bytes as base64."""
        if self._lines is None:
            return
        line = {"t": round(time.monotonic() - self._began, 6), "peer": peer, "dir": direction}
        if isinstance(raw, str):
            line["text"] = raw
        else:
            line["base64"] = base64.b64encode(raw).decode()
        self._lines.write(json.dumps(line, ensure_ascii=False) + "\n")

    def close(self) -> None:
        if self._lines is not None:
            self._lines.close()
