"""Small data sets on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

WriteManifest = Callable[..., Path]


def manifest_row(sample_id: str, /, **changes: Any) -> dict[str, Any]:
    """A good row of a compiled sample; a change to None takes the key away."""
    row = {
        "sample_id": sample_id,
        "task": "hesitation",
        "video": "data/videos/a.mp4",
        "adapter": "data/adapters/a.json",
        "duration_seconds": 12.4,
    }
    return {key: value for key, value in (row | changes).items() if value is not None}


@pytest.fixture
def write_manifest(tmp_path: Path) -> WriteManifest:
    """Write rows (objects, or text as it is) to data/manifest.jsonl below `tmp_path`."""
    for name in ("data/videos/a.mp4", "data/adapters/a.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("{}")

    def write(*rows: dict[str, Any] | str) -> Path:
        lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
        path = tmp_path / "data/manifest.jsonl"
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return path

    return write
