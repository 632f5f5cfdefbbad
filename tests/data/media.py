"""Videos and recordings whose content says what it is."""

from __future__ import annotations

import subprocess
from fractions import Fraction
from importlib import metadata
from pathlib import Path

import av
import imageio_ffmpeg
import numpy as np
import soundfile

FFMPEG = imageio_ffmpeg.get_ffmpeg_exe()
_BITS = 10
_BLOCK = 16


def speech(name: str) -> Path:
    """A real reading that ships in the package moonshine-voice (16, 24 or 48 kHz)."""
    files = metadata.files("moonshine-voice") or []
    return next(Path(str(f.locate())) for f in files if f.name == name)


def coded_picture(number: int, width: int, height: int) -> np.ndarray:
    """Shape [height, width], uint8: the number in black and white blocks along the top."""
    picture = np.full((height, width), 60 + number * 7 % 120, np.uint8)
    for bit in range(_BITS):
        picture[:_BLOCK, bit * _BLOCK : (bit + 1) * _BLOCK] = 235 if number >> bit & 1 else 16
    return picture


def decoded_numbers(path: Path) -> list[int]:
    """The number in each video frame of a file."""
    numbers = []
    for luma in decoded_luma(path):
        centres = luma[_BLOCK // 2, _BLOCK // 2 : _BITS * _BLOCK : _BLOCK]
        numbers.append(sum(1 << bit for bit, value in enumerate(centres) if value > 128))
    return numbers


def decoded_luma(path: Path) -> list[np.ndarray]:
    """Every video frame's luma, shape [height, width]."""
    with av.open(str(path)) as container:
        return [
            frame.to_ndarray(format="yuv420p")[: frame.height]
            for frame in container.decode(video=0)
        ]


def decoded_pcm(path: Path) -> np.ndarray:
    """The sound as int16, as the ffmpeg binary decodes it."""
    command = [FFMPEG, "-nostdin", "-v", "error", "-i", f"file:{path}"]
    command += ["-map", "0:a", "-f", "s16le", "-"]
    done = subprocess.run(command, capture_output=True, check=True, stdin=subprocess.DEVNULL)
    return np.frombuffer(done.stdout, "<i2")


def write_video(
    path: Path,
    times: list[Fraction],
    *,
    size: tuple[int, int] = (320, 180),
    codec: str = "libx264",
    last: Fraction = Fraction(1, 25),
) -> Path:
    """Video frames 0, 1, 2, ... at the given times; the last one is shown for `last` seconds."""
    base = Fraction(1, 90_000)
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=25)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        stream.codec_context.time_base = base
        stream.time_base = base
        stream.options = {"qp": "10", "bf": "2"} if codec == "libx264" else {"q": "2"}
        ends = [*times[1:], times[-1] + last]
        for number, (time, end) in enumerate(zip(times, ends, strict=True)):
            luma = coded_picture(number, *size)
            chroma = np.full((luma.shape[0] // 2, luma.shape[1]), 128, np.uint8)
            frame = av.VideoFrame.from_ndarray(np.vstack([luma, chroma]), format="yuv420p")
            frame.pts, frame.time_base = int(time / base), base
            frame.duration = int((end - time) / base)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return path


def constant(fps: Fraction | int, count: int) -> list[Fraction]:
    """Times of `count` video frames at a constant rate."""
    return [Fraction(n) / Fraction(fps) for n in range(count)]


def run_ffmpeg(*arguments: str | Path) -> None:
    """Run the ffmpeg binary on test material."""
    command = [
        FFMPEG,
        "-nostdin",
        "-v",
        "error",
        "-y",
        *map(str, arguments),
    ]
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)


def noise(seconds: float, rate: int = 16_000, seed: int = 0) -> np.ndarray:
    """Speech-band noise with a sharp start, shape [samples], peak 0.5."""
    samples = np.random.default_rng(seed).standard_normal(round(seconds * rate))
    spectrum = np.fft.rfft(samples)
    spectrum[np.fft.rfftfreq(len(samples), 1 / rate) > 3400] = 0
    samples = np.fft.irfft(spectrum, len(samples))
    return 0.5 * samples / np.abs(samples).max()


def write_wav(path: Path, samples: np.ndarray, rate: int = 16_000, subtype: str = "PCM_16") -> Path:
    """Write a recording, shape [samples] or [samples, channels]."""
    soundfile.write(str(path), samples, rate, subtype=subtype)
    return path
