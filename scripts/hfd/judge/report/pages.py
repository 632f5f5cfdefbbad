"""What the report's pages show, as JavaScript files that a page loads from beside itself.

A page opened from ``file://`` may not fetch, but it may load scripts; so each data file is one
call: ``HFD.sample({...})`` or ``HFD.index({...})``.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from hfd.data.manifest import Sample
from hfd.files import atomic_write
from hfd.judge.outcome import outcome
from hfd.judge.reference import Reference
from hfd.judge.report.players import peaks, player_file
from hfd.judge.sample import Record
from hfd.judge.wav_check import read_wav

ASSETS = Path(__file__).parent / "assets"


def write_script(path: Path, call: str, value: Any) -> None:
    """Write ``HFD.<call>(value)``."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    # Inside a script element or a string literal these three would end it.
    text = text.replace("</", "<\\/").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    atomic_write(path, f"HFD.{call}({text});\n")


def copy_assets(out: Path) -> None:
    """Put pages, styles and libraries in place."""
    for page in ASSETS.glob("*.html"):
        shutil.copyfile(page, out / page.name)
    target = out / "assets"
    target.mkdir(parents=True, exist_ok=True)
    for source in [*ASSETS.glob("*.css"), *ASSETS.glob("*.js"), *(ASSETS / "vendor").iterdir()]:
        shutil.copyfile(source, target / source.name)


def write_sample_page(
    out: Path,
    sample: Sample,
    reference: Reference | None,
    records: Sequence[Record],
    sources: Mapping[str, Path],
    *,
    cache: Path | None,
    players: bool,
) -> None:
    """Write ``samples/<id>.js`` and the players of one sample, all models side by side."""
    drawn = [record for record in records if record.drawing]
    longest = [record.drawing["wav_s"] for record in drawn]
    seconds = max([sample.duration_seconds, *longest])
    user = reference.pcm if reference else np.zeros(0, "<i2")
    page = {
        "id": sample.sample_id,
        "task": sample.task,
        "media_s": sample.duration_seconds,
        "video": os.path.relpath(sample.video, out) if sample.video.is_file() else None,
        "shown_s": seconds,
        "question": _question(reference),
        "events": _events(reference),
        "user_peaks": peaks(user, 16_000, seconds) if len(user) else [],
        "models": [
            _model(out, record, user, seconds, sources[record.model], cache, players)
            for record in records
        ],
    }
    write_script(out / "samples" / f"{sample.sample_id}.js", "sample", page)


def _question(reference: Reference | None) -> dict[str, float] | None:
    question = reference.question if reference else None
    if question is None:
        return None
    found = {"q1": question.q1}
    if question.prefix and question.correction:
        found |= {
            "p0": question.prefix.start,
            "p1": question.prefix.end,
            "q0": question.correction.start,
        }
    return found


def _events(reference: Reference | None) -> list[dict[str, Any]]:
    if reference is None or reference.adapter is None:
        return []
    return [
        {
            "start": event.start,
            "end": event.end,
            "role": event.role,
            "text": event.spoken_text or event.text or "",
        }
        for event in reference.adapter.events
    ]


def _model(
    out: Path,
    record: Record,
    user: np.ndarray,
    seconds: float,
    source: Path,
    cache: Path | None,
    players: bool,
) -> dict[str, Any]:
    """One model's part of a sample page."""
    folder = source / record.sample_id
    part: dict[str, Any] = {
        "model": record.model,
        "status": record.status,
        "outcome": outcome(record),
        "reason": record.reason,
        "rules": {code: [v.status, v.reason] for code, v in sorted(record.verdicts.items())},
        "metrics": {name: _short(value) for name, value in record.metrics.items()},
        "drawing": record.drawing,
        "files": os.path.relpath(folder, out) if folder.is_dir() else None,
        "peaks": [],
        "player": None,
    }
    wav = read_wav(folder / "assistant_audio.wav")[0] if record.drawing else None
    if wav is not None:
        part["peaks"] = peaks(wav.pcm, wav.rate, seconds)
        if players:
            part["player"] = f"players/{record.model}/{record.sample_id}.webm"
            key = f"{record.facts['wav_sha256']}:{record.facts.get('input_sha256')}"
            player_file(out / part["player"], user, wav.pcm, wav.rate, cache, key)
    return part


def _short(value: Any) -> Any:
    return round(value, 4) if isinstance(value, float) else value
