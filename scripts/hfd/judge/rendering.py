"""A watchable video of one result: user left, model right, captions at their times.

The last video frame is frozen until the model has finished; nothing is cut.
"""

from __future__ import annotations

import math
import subprocess
import tempfile
from pathlib import Path

import imageio_ffmpeg
import numpy as np
import soundfile
import soxr

from hfd.data.compiled_tracks import read_sound
from hfd.data.manifest import Sample
from hfd.errors import HfdError
from hfd.files import atomic_path, atomic_write, read_json
from hfd.media_time import SAMPLE_RATE

RATE = 24_000
_CAPTION_S = 4.0
"""How long the last words of a turn stay."""
_CUE_S = 1.0
_LONGEST = 42
"""Characters of one cue."""
_ENDS = (".", "?", "!", "。", "？", "！", "…")


def render(sample: Sample, source: Path, target: Path) -> None:
    """One result as ``<id>.mp4`` with a caption track, and the captions as ``<id>.srt``."""
    result = read_json(source / "result.json")
    assistant, rate = soundfile.read(source / "assistant_audio.wav", dtype="int16")
    stereo = _stereo(read_sound(sample.video), assistant, rate)
    seconds = len(stereo) / RATE
    srt = captions([(event["t"], event["delta"]) for event in result["text_events"]])
    with tempfile.TemporaryDirectory() as folder, atomic_path(target) as part:
        sound, text = Path(folder) / "sound.wav", Path(folder) / "captions.srt"
        soundfile.write(sound, stereo, RATE, subtype="PCM_16")
        text.write_text(srt or "1\n00:00:00,000 --> 00:00:00,001\n \n", encoding="utf-8")
        _ffmpeg(sample.video, sound, text, seconds, part)
    atomic_write(target.with_suffix(".srt"), srt)


def _stereo(user: np.ndarray, assistant: np.ndarray, rate: int) -> np.ndarray:
    left = soxr.resample(user, SAMPLE_RATE, RATE)
    right = assistant if rate == RATE else soxr.resample(assistant, rate, RATE)
    stereo = np.zeros((max(len(left), len(right)), 2), np.int16)
    stereo[: len(left), 0], stereo[: len(right), 1] = left, right
    return stereo


def captions(events: list[tuple[float, str]]) -> str:
    """SubRip text: every word once, in cues that begin when all of their words had come.

    A cue ends with a sentence, a second of text, a full line, or a pause.
    """
    cues: list[tuple[float, str]] = []
    words, began = "", 0.0
    for number, (t, delta) in enumerate(events):
        began = began if words.strip() else t
        words += delta
        following = events[number + 1][0] if number + 1 < len(events) else math.inf
        full = words.rstrip().endswith(_ENDS) or len(words) >= _LONGEST or t - began >= _CUE_S
        if words.strip() and (full or following - t > _CUE_S):
            cues.append((t, " ".join(words.split())))
            words = ""
    blocks = []
    for number, (t, text) in enumerate(cues):
        following = cues[number + 1][0] if number + 1 < len(cues) else math.inf
        end = max(min(following, t + _CAPTION_S), t + 0.001)
        blocks.append(f"{number + 1}\n{_stamp(t)} --> {_stamp(end)}\n{text}\n")
    return "\n".join(blocks)


def _stamp(seconds: float) -> str:
    ms = round(seconds * 1000)
    return f"{ms // 3600000:02}:{ms // 60000 % 60:02}:{ms // 1000 % 60:02},{ms % 1000:03}"


def _ffmpeg(video: Path, sound: Path, captions_file: Path, seconds: float, target: Path) -> None:
    # fmt: off
    command = [
        imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-nostdin", "-y",
        "-i", f"file:{video.absolute()}", "-i", sound, "-i", captions_file,
        "-filter_complex", "[0:v]tpad=stop=-1:stop_mode=clone,pad=ceil(iw/2)*2:ceil(ih/2)*2[v]",
        "-map", "[v]", "-map", "1:a", "-map", "2:s", "-t", f"{seconds:.6f}",
        "-c:v", "libx264", "-preset", "veryfast", "-crf", "23", "-pix_fmt", "yuv420p",
        "-c:a", "aac", "-b:a", "96k", "-c:s", "mov_text", "-disposition:s:0", "default",
        "-movflags", "+faststart", "-f", "mp4", f"file:{target.absolute()}",
    ]
    # fmt: on
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    if done.returncode:
        raise HfdError(f"cannot be rendered: {done.stderr.strip()[-300:]}", file=video)
