"""Canary samples: a random word is said or a random colour shown early, and asked for late.

Who keeps the context and looks at the frames can answer; who crops or ignores can only guess.
"""

from __future__ import annotations

import hashlib
import json
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import av
import numpy as np

from hfd.data.encode import encode
from hfd.data.source_video import probe_video
from hfd.data.timeline import Timeline
from hfd.files import atomic_path, atomic_write, write_json
from hfd.media_time import FPS, SAMPLE_RATE

TASK = "canary"
COUNT = 3
"""Samples of each kind."""
SPOKEN = {
    "tiger": ["老虎"], "piano": ["钢琴"], "garden": ["花园"], "window": ["窗户", "窗子"],
    "butter": ["黄油"], "rabbit": ["兔子"], "castle": ["城堡"], "pencil": ["铅笔"],
    "island": ["岛屿", "海岛"], "monkey": ["猴子"], "doctor": ["医生"], "hammer": ["锤子"],
    "lemon": ["柠檬"], "dragon": ["龙"], "kitchen": ["厨房"], "mountain": ["山"],
    "banana": ["香蕉"], "camera": ["相机", "照相机"], "winter": ["冬天"], "market": ["市场"],
    "soldier": ["士兵"], "bottle": ["瓶子"], "thunder": ["雷"], "sugar": ["糖"],
    "elephant": ["大象"], "basket": ["篮子"], "river": ["河"], "carpet": ["地毯"],
    "guitar": ["吉他"], "tomato": ["西红柿", "番茄"], "pocket": ["口袋"], "silver": ["银"],
}  # fmt: skip
"""Words that may be said, with what they are in Chinese."""
SHOWN: dict[str, tuple[tuple[int, int, int], list[str]]] = {
    "red": ((220, 20, 20), ["红"]), "green": ((20, 170, 40), ["绿"]),
    "blue": ((20, 60, 220), ["蓝"]), "yellow": ((240, 220, 30), ["黄"]),
    "orange": ((245, 130, 20), ["橙", "橘"]), "purple": ((130, 30, 170), ["紫"]),
    "black": ((5, 5, 5), ["黑"]), "white": ((250, 250, 250), ["白色", "白的"]),
}  # fmt: skip
"""Colours that may fill the frame."""
_TELL = "Please remember one word. The word is {}."
_ASK = {
    "spoken": "Which word did I ask you to remember?",
    "shown": "Which color filled the whole picture at the beginning of the video?",
}
_LEAD_S = 1.0
_SHOWN_S = (1.0, 3.0)
_ASKED_S = (8.0, 12.0)
_SIZE = (120, 160)

Say = Callable[[str], np.ndarray]
"""A sentence as int16 at 16 kHz, shape [samples]."""


@dataclass(frozen=True)
class Canary:
    """One sample.

    Attributes:
        sample_id: its name.
        kind: ``spoken`` or ``shown``.
        word: what must be remembered, in English.
        asked_s: when the question begins, in media seconds.
    """

    sample_id: str
    kind: str
    word: str
    asked_s: float


def drawn_canaries(nonce: str) -> list[Canary]:
    """The canaries of a nonce: no one can know their words before it is named."""
    draw = random.Random(hashlib.sha256(f"canary:{nonce}".encode()).digest())
    words = [("spoken", word) for word in draw.sample(list(SPOKEN), COUNT)]
    words += [("shown", word) for word in draw.sample(list(SHOWN), COUNT)]
    return [
        Canary(f"{kind}{n % COUNT + 1}", kind, word, round(draw.uniform(*_ASKED_S), 2))
        for n, (kind, word) in enumerate(words)
    ]


def forms(kind: str) -> dict[str, list[str]]:
    """What counts as each word of a kind, by the English word: it and its Chinese forms."""
    if kind == "spoken":
        return {word: [word, *chinese] for word, chinese in SPOKEN.items()}
    return {word: [word, *chinese] for word, (_, chinese) in SHOWN.items()}


def make_canaries(nonce: str, say: Say, out: Path) -> None:
    """Write the compiled samples of a nonce: ``videos/``, ``adapters/`` and ``manifest.jsonl``."""
    rows = [_make(canary, say, out) for canary in drawn_canaries(nonce)]
    lines = (json.dumps(row, ensure_ascii=False) for row in rows)
    atomic_write(out / "manifest.jsonl", "".join(f"{line}\n" for line in lines))


def _make(canary: Canary, say: Say, out: Path) -> dict[str, Any]:
    parts = [(canary.asked_s, "question", _ASK[canary.kind])]
    if canary.kind == "spoken":
        parts.insert(0, (_LEAD_S, "statement", _TELL.format(canary.word)))
    said = [(round(at * SAMPLE_RATE), role, text, say(text)) for at, role, text in parts]
    end = said[-1][0] + len(said[-1][3])
    timeline = Timeline((), math.ceil(Fraction(end, SAMPLE_RATE) * FPS), ())
    track = np.zeros(timeline.samples, np.int16)
    for at, _, _, sound in said:
        track[at : at + len(sound)] = sound
    names = {
        "video": f"videos/{canary.sample_id}.mp4",
        "adapter": f"adapters/{canary.sample_id}.json",
    }
    target = out / names["video"]
    target.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=out) as folder, atomic_path(target) as part:
        source = Path(folder) / "frames.mp4"
        _write_frames(source, _frames(canary, timeline.body))
        encode(probe_video(source), track, timeline, part)
    events = [
        {
            "role": role,
            "start": at / SAMPLE_RATE,
            "end": (at + len(sound)) / SAMPLE_RATE,
            "text": text,
            "spoken_text": text,
        }
        for at, role, text, sound in said
    ]
    row = {"sample_id": canary.sample_id, "duration_seconds": timeline.seconds}
    write_json(out / names["adapter"], row | {"events": events})
    asked = {"kind": canary.kind, "word": canary.word, "asked_s": canary.asked_s}
    return row | {"task": TASK, **names, "canary": asked}


def _frames(canary: Canary, count: int) -> list[np.ndarray]:
    """A bar that moves over grey; from 1 to 3 s one colour alone where it is to be remembered."""
    frames = []
    for n in range(count):
        frame = np.full((*_SIZE, 3), 110, np.uint8)
        left = 6 * n % (_SIZE[1] - 20)
        frame[40:80, left : left + 20] = 180
        if canary.kind == "shown" and _SHOWN_S[0] <= n / FPS < _SHOWN_S[1]:
            frame[:] = SHOWN[canary.word][0]
        frames.append(frame)
    return frames


def _write_frames(path: Path, frames: Sequence[np.ndarray]) -> None:
    with av.open(f"file:{path.absolute()}", "w", format="mp4") as container:
        video = container.add_stream("libx264", rate=FPS, options={"qp": "10"})
        video.height, video.width = _SIZE
        video.pix_fmt, video.thread_count = "yuv420p", 1
        for frame in frames:
            container.mux(video.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(video.encode(None))
