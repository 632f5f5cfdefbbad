"""The label sheet: one HTML file with its clips in it, that needs nothing beside it."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hfd.files import atomic_write
from hfd.judge.label_clips import ClipSound
from hfd.judge.report.players import peaks, player_file
from hfd.media_time import SAMPLE_RATE

_TEMPLATE = Path(__file__).parent / "label_sheet.html"
_POINTS = 1000


def write_label_page(page: Path, sheet: str, sounds: Iterable[ClipSound], scratch: Path) -> None:
    """Write the page; nothing in it says which model a clip is of.

    Args:
        page: the file.
        sheet: the sheet's name, that every saved file repeats.
        sounds: the clips in their order; each is held only while it is encoded.
        scratch: an empty folder.
    """
    data = {"sheet": sheet, "clips": [_clip(sound, scratch) for sound in sounds]}
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("</", "<\\/")
    template = _TEMPLATE.read_text(encoding="utf-8")
    atomic_write(page, template.replace('"the clips"', text, 1))


def _clip(sound: ClipSound, scratch: Path) -> dict[str, Any]:
    clip, path = sound.clip, scratch / "clip.webm"
    seconds = clip.end - clip.start
    player_file(path, sound.user, sound.assistant, sound.rate, None, clip.name)
    return {
        "name": clip.name,
        "seconds": round(seconds, 3),
        "user": peaks(sound.user, SAMPLE_RATE, seconds, _POINTS),
        "assistant": peaks(sound.assistant, sound.rate, seconds, _POINTS),
        "sound": "data:audio/webm;base64," + base64.b64encode(path.read_bytes()).decode(),
    }
