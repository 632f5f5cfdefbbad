"""Small data sets on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hfd.data.compile import compile_sample
from hfd.data.raw import RawSample, read_raw

from .media import constant, noise, write_video, write_wav

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


@dataclass
class Raw:
    """A folder with raw rows: a 2 s video (25 fps) and two recordings of 2 s each."""

    root: Path

    @property
    def manifest(self) -> Path:
        return self.root / "data/raw/manifest.jsonl"

    def path(self, name: str) -> Path:
        return self.root / "data/raw" / name

    def row(self, sample_id: str = "s", /, **changes: Any) -> dict[str, Any]:
        """A good row; `first` and `second` change keys of the two questions."""
        first = {
            "role": "first_question",
            "audio": "data/raw/first.wav",
            "start": 5.3,
            "end": 5.7,
            "source_start": 0.25,
            "source_end": 0.65,
            "text": "What is the colour of the car?",
            "spoken_text": "What is the",
        }
        second = {
            "role": "second_question",
            "audio": "data/raw/second.wav",
            "start": 6.1,
            "end": 6.6,
            "source_start": 0.5,
            "source_end": 1.0,
            "text": "How many people are there?",
        }
        first |= changes.pop("first", {})
        second |= changes.pop("second", {})
        return {
            "sample_id": sample_id,
            "video": "data/raw/source.mp4",
            "timing": {"video_offset": 5.1},
            "duplex": {"inputs": [first, second]},
        } | changes

    def write(self, *rows: dict[str, Any]) -> Path:
        self.manifest.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        return self.manifest

    def read(self, *rows: dict[str, Any], **options: Any) -> list[RawSample]:
        return read_raw(self.write(*rows), self.root, **options)

    def compile(self, row: dict[str, Any], **options: Any) -> tuple[Path, dict[str, Any]]:
        """Compile one row to out/v.mp4; gives the video and the adapter's content."""
        (sample,) = self.read(row)
        video, adapter = self.root / "out/v.mp4", self.root / "out/a.json"
        compile_sample(sample, video, adapter, **options)
        return video, json.loads(adapter.read_text(encoding="utf-8"))


@pytest.fixture
def raw(tmp_path: Path) -> Raw:
    folder = Raw(tmp_path)
    folder.manifest.parent.mkdir(parents=True)
    write_video(folder.path("source.mp4"), constant(25, 50))
    write_wav(folder.path("first.wav"), noise(2.0, seed=1))
    write_wav(folder.path("second.wav"), noise(2.0, seed=2))
    return folder
