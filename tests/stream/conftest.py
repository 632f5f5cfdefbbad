"""Compiled files with a known content (clips.py), made once per test session."""

from __future__ import annotations

import subprocess
from pathlib import Path

import imageio_ffmpeg
import pytest
import soundfile

from tests.stream.clips import PICTURE, picture, sound


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """Make a compiled file of `frames` video frames; options become ffmpeg output options."""
    folder = tmp_path_factory.mktemp("compiled")

    def make(name: str, frames: int, *, codec: str = "flac", samples: int | None = None) -> Path:
        path = folder / name
        wav, raw = folder / f"{name}.wav", folder / f"{name}.rgb"
        soundfile.write(wav, sound(frames * PICTURE if samples is None else samples), 16000)
        raw.write_bytes(b"".join(picture(k).tobytes() for k in range(frames)))
        # fmt: off
        subprocess.run(
            [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-nostdin", "-y",
             "-f", "rawvideo", "-pix_fmt", "rgb24", "-s", "64x48", "-r", "5", "-i", raw,
             "-i", wav, "-c:v", "libx264", "-bf", "2", "-pix_fmt", "yuv420p",
             "-c:a", codec, "-strict", "-2", "-f", "mp4", path],
            check=True,
        )
        # fmt: on
        return path

    return make
