"""Compiling: video frames, sound, determinism, and sources that must be refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import av
import numpy as np
import pytest
import soundfile

from hfd.data import decode as decode_module
from hfd.errors import HfdError
from hfd.files import sha256_file

from .conftest import Raw
from .media import (
    coded_picture,
    constant,
    decoded_luma,
    decoded_numbers,
    decoded_pcm,
    noise,
    run_ffmpeg,
    speech,
    write_video,
    write_wav,
)

SCRIPT = Path(__file__).parents[2] / "scripts/compile_hesitation.py"


def shown(times: list[Fraction], pictures: int) -> list[int]:
    """Frame k of a compiled file shows the last source frame that is not after k/5 s."""
    return [max(n for n, t in enumerate(times) if t <= Fraction(k, 5)) for k in range(pictures)]


def refusal(raw: Raw, **changes: object) -> str:
    """The one error; nothing may have been written, and no temporary file be left."""
    with pytest.raises(HfdError) as caught:
        raw.compile(raw.row(**changes))
    assert not [path for path in (raw.root / "out").rglob("*") if path.is_file()]
    return str(caught.value)


def test_events_lie_at_their_exact_sample_and_the_rest_is_silent(raw: Raw) -> None:
    video, adapter = raw.compile(raw.row())
    pcm = decoded_pcm(video)
    first, _ = soundfile.read(raw.path("first.wav"), dtype="int16")
    second, _ = soundfile.read(raw.path("second.wav"), dtype="int16")
    expected = np.zeros(25 * 3200, np.int16)
    expected[3200:9600] = first[4000:10400]
    expected[16000:24000] = second[8000:16000]
    assert np.array_equal(pcm, expected)
    assert not pcm[-48_000:].any()
    assert (adapter["p0"], adapter["p1"], adapter["q0"], adapter["q1"]) == (0.2, 0.6, 1.0, 1.5)
    assert [e["start_sample"] for e in adapter["events"]] == [3200, 16000]
    assert [e["end_sample"] for e in adapter["events"]] == [9600, 24000]
    assert adapter["events"][1]["spoken_text"] == "How many people are there?"
    assert adapter["raw"] == raw.row()


@pytest.mark.parametrize(
    ("name", "rate", "start"),
    [("beckett.wav", 16_000, 1.2), ("endgame_nagg_nell.wav", 24_000, 3.1)]
    + [("two_cities.wav", 48_000, 5.0)],
)
def test_real_speech_of_any_rate_keeps_its_onset_and_its_level(
    name: str, rate: int, start: float, raw: Raw
) -> None:
    recording = str(raw.path(name).relative_to(raw.root))
    raw.path(name).write_bytes(speech(name).read_bytes())
    cut = {"audio": recording, "source_start": start, "source_end": start + 0.5}
    video, adapter = raw.compile(raw.row(second=cut))
    heard = decoded_pcm(video).astype(float)[16000:24000] / 32768
    samples, found = soundfile.read(speech(name))
    assert found == rate
    # independent reference: windowed-sinc interpolation is not needed, correlation finds the lag
    source = samples[round(start * rate) : round((start + 0.5) * rate)]
    grid = np.interp(np.arange(8000) / 16000, np.arange(len(source)) / rate, source)
    lags = np.correlate(heard, grid[400:-400], "valid")
    assert abs(int(np.argmax(lags)) - 400) <= 1
    assert np.sqrt(np.mean(heard**2) / np.mean(grid**2)) == pytest.approx(1, abs=0.05)
    assert adapter["compiled"]["source_rates"] == [16000, rate]


@pytest.mark.parametrize("rate", [8000, 11_025, 22_050, 44_100, 48_000, 96_000])
def test_resampling_moves_nothing_at_any_rate(rate: int, raw: Raw) -> None:
    t = np.arange(2 * rate) / rate
    write_wav(raw.path("second.wav"), 0.5 * np.sin(2 * np.pi * 700 * t * (1 + t)), rate)
    video, _ = raw.compile(raw.row())
    t = 0.5 + np.arange(8000) / 16000
    expected = 0.5 * np.sin(2 * np.pi * 700 * t * (1 + t))
    assert np.abs(decoded_pcm(video)[16000:24000] / 32768 - expected).max() < 0.002


@pytest.mark.parametrize("subtype", ["PCM_U8", "PCM_24", "FLOAT", "DOUBLE"])
def test_sample_formats_keep_their_level(subtype: str, raw: Raw) -> None:
    reference = decoded_pcm(raw.compile(raw.row())[0]).astype(int)
    write_wav(raw.path("second.wav"), noise(2.0, seed=2), subtype=subtype)
    apart = np.abs(decoded_pcm(raw.compile(raw.row())[0]) - reference)
    assert apart.max() <= (256 if subtype == "PCM_U8" else 1)


def test_two_equal_channels_are_not_louder_than_one(raw: Raw) -> None:
    reference = decoded_pcm(raw.compile(raw.row())[0])
    write_wav(raw.path("second.wav"), np.stack([noise(2.0, seed=2)] * 2, axis=1))
    assert np.array_equal(decoded_pcm(raw.compile(raw.row())[0]), reference)


SOURCES = {
    "29.97 fps": constant(Fraction(30_000, 1001), 64),
    "25 fps": constant(25, 50),
    "3 fps": constant(3, 7),
    "long gaps": [Fraction(n) for n in ("0", "0.04", "1.1", "1.12", "1.9")],
    "uneven": [Fraction(n * n, 250) for n in range(23)],
    "one picture": [Fraction(0)],
}


@pytest.mark.parametrize("name", SOURCES)
def test_no_picture_comes_before_its_time_and_the_last_one_freezes(name: str, raw: Raw) -> None:
    times = SOURCES[name]
    write_video(raw.path("source.mp4"), times)
    video, adapter = raw.compile(raw.row())
    body, frames = adapter["compiled"]["body_frames"], adapter["compiled"]["frames"]
    numbers = decoded_numbers(video)
    assert len(numbers) == frames == body + 15
    assert numbers[:body] == shown(times, body)
    assert numbers[body:] == [len(times) - 1] * 15
    luma = decoded_luma(video)
    assert all(np.array_equal(picture, luma[-1]) for picture in luma[body:])
    with av.open(str(video)) as container:
        stamps = [frame.pts * frame.time_base for frame in container.decode(video=0)]
    assert stamps == [Fraction(k, 5) for k in range(frames)]


def test_speech_beyond_the_video_holds_the_last_picture_before_the_tail(raw: Raw) -> None:
    write_video(raw.path("source.mp4"), constant(25, 25))
    video, adapter = raw.compile(raw.row())
    assert adapter["q1"] == 1.5
    assert adapter["compiled"]["body_frames"] == 8
    assert decoded_numbers(video)[5:] == [24] * 18
    assert "last video frame is held" in adapter["compiled"]["warnings"][0]


def test_a_start_offset_of_the_container_is_not_media_time(raw: Raw) -> None:
    run_ffmpeg(
        *("-i", raw.path("source.mp4"), "-c", "copy", "-output_ts_offset", "5.1"),
        *("-f", "mpegts", raw.path("source.ts")),
    )
    video, adapter = raw.compile(raw.row(video="data/raw/source.ts"))
    assert adapter["compiled"]["body_frames"] == 10
    assert decoded_numbers(video)[:10] == shown(constant(25, 50), 10)


def test_a_rotated_video_is_compiled_upright(raw: Raw) -> None:
    run_ffmpeg(
        *("-display_rotation:v:0", "90", "-i", raw.path("source.mp4")),
        *("-c", "copy", raw.path("turned.mp4")),
    )
    video, _ = raw.compile(raw.row(video="data/raw/turned.mp4"))
    luma = decoded_luma(video)
    assert luma[0].shape == (320, 180)
    upright = np.rot90(coded_picture(0, 320, 180), 1)
    assert np.abs(luma[0].astype(int) - upright).mean() < 3


def test_odd_sizes_ten_bits_and_an_own_sound_track_are_handled(raw: Raw) -> None:
    run_ffmpeg(
        *("-f", "lavfi", "-i", "testsrc2=size=641x361:rate=25:duration=2"),
        *("-f", "lavfi", "-i", "sine=frequency=500:duration=2"),
        *("-pix_fmt", "yuv444p10le", "-c:v", "libx264", "-c:a", "aac", raw.path("odd.mkv")),
    )
    video, _ = raw.compile(raw.row(video="data/raw/odd.mkv"))
    with av.open(str(video)) as container:
        stream = container.streams.video[0]
        assert (stream.width, stream.height, stream.pix_fmt) == (640, 360, "yuv420p")
    assert not decoded_pcm(video)[:3200].any(), "the source's own sound is replaced"


@pytest.mark.parametrize(
    "name", ["it's a: [test],;=50%.mp4", '"q"\\ñ\n%03d.mp4', "-dash.mp4", "视频 一.mp4"]
)
def test_any_file_name_is_only_a_name(name: str, raw: Raw) -> None:
    if "\n" in name:
        name = name.replace("\n", "")
    raw.path("source.mp4").rename(raw.path(name))
    video, _ = raw.compile(raw.row(video=f"data/raw/{name}"))
    assert decoded_numbers(video)[9] == 45


def write_hdr(path: Path) -> None:
    run_ffmpeg(
        *("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=2"),
        *("-vf", "setparams=color_trc=smpte2084:color_primaries=bt2020:colorspace=bt2020nc"),
        *("-pix_fmt", "yuv420p10le", "-c:v", "libx264", path),
    )


def write_truncated(path: Path) -> None:
    whole = path.with_name("whole.mp4")
    run_ffmpeg(
        *("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=6"),
        *("-c:v", "libx264", "-movflags", "+faststart", whole),
    )
    path.write_bytes(whole.read_bytes()[: whole.stat().st_size * 6 // 10])


def write_damaged(path: Path) -> None:
    whole = path.with_name("whole.mp4")
    run_ffmpeg(
        *("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=3"),
        *("-c:v", "libx264", "-bf", "0", whole),
    )
    data = bytearray(whole.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 3000] = np.random.default_rng(0).bytes(3000)
    path.write_bytes(data)


def write_sound_only(path: Path) -> None:
    run_ffmpeg("-f", "lavfi", "-i", "sine=duration=2", "-c:a", "aac", path)


def write_cover_only(path: Path) -> None:
    cover = path.with_name("cover.png")
    run_ffmpeg("-f", "lavfi", "-i", "testsrc2=size=64x64:duration=0.04", "-frames:v", "1", cover)
    run_ffmpeg(
        *("-f", "lavfi", "-i", "sine=duration=2", "-i", cover, "-map", "0", "-map", "1"),
        *("-c:v", "png", "-disposition:v:0", "attached_pic", path),
    )


BAD_VIDEOS = {
    "text": (lambda path: path.write_text("no video"), "cannot be read"),
    "empty": (lambda path: path.write_bytes(b""), "cannot be read"),
    "truncated": (write_truncated, "header promises"),
    "damaged": (write_damaged, "source.mp4"),
    "sound only": (write_sound_only, "no video"),
    "cover image only": (write_cover_only, "no video"),
    "HDR": (write_hdr, "HDR"),
}


@pytest.mark.parametrize("name", BAD_VIDEOS)
def test_a_bad_video_is_refused_and_nothing_is_written(name: str, raw: Raw) -> None:
    write, words = BAD_VIDEOS[name]
    write(raw.path("source.mp4"))
    text = refusal(raw)
    assert "source.mp4" in text and words in text


def test_a_compiled_video_is_refused_as_a_source(raw: Raw) -> None:
    video, _ = raw.compile(raw.row())
    raw.path("source.mp4").write_bytes(video.read_bytes())
    for path in (raw.root / "out").iterdir():
        path.unlink()
    assert "already compiled" in refusal(raw)


BAD_WAVS = {
    "text": (lambda path: path.write_text("no sound"), "no sound file"),
    "empty": (lambda path: path.write_bytes(b""), "no sound file"),
    "no samples": (lambda path: write_wav(path, np.zeros(0)), "no samples"),
    "5.1": (lambda path: write_wav(path, np.tile(noise(2.0)[:, None], 6)), "6 channels"),
    "NaN": (
        lambda path: write_wav(path, np.full(32_000, np.nan), subtype="FLOAT"),
        "not finite",
    ),
    "not scaled": (
        lambda path: write_wav(path, noise(2.0) * 32768, subtype="FLOAT"),
        "full scale is 1",
    ),
    "silent": (lambda path: write_wav(path, np.zeros(32_000)), "is silent"),
    "short": (lambda path: write_wav(path, noise(0.9)), "beyond the recording"),
}


@pytest.mark.parametrize("name", BAD_WAVS)
def test_a_bad_recording_is_refused_and_nothing_is_written(name: str, raw: Raw) -> None:
    write, words = BAD_WAVS[name]
    write(raw.path("second.wav"))
    assert words in refusal(raw)


def test_over_full_scale_is_clipped_and_counted(raw: Raw) -> None:
    write_wav(raw.path("second.wav"), noise(2.0) * 2.4, subtype="FLOAT")
    video, adapter = raw.compile(raw.row())
    assert adapter["compiled"]["clipped_samples"] > 0
    assert decoded_pcm(video).max() == 32767


def test_a_file_that_differs_from_the_plan_never_takes_its_place(
    raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = decode_module.decode

    def one_sample_off(path: Path) -> decode_module.Decoded:
        found = honest(path)
        found.pcm = np.roll(found.pcm, 1)
        return found

    monkeypatch.setattr("hfd.data.compile.decode", one_sample_off)
    assert "sound of the compiled file" in refusal(raw)


def command(raw: Raw, *more: str) -> list[str]:
    return [
        *(sys.executable, str(SCRIPT), f"--raw={raw.manifest}", f"--root={raw.root}"),
        *("--sample-id=-s", f"--video={raw.root}/out/v.mp4", f"--adapter={raw.root}/out/a.json"),
        *more,
    ]


def test_the_bytes_are_the_same_on_every_run(raw: Raw) -> None:
    raw.write(raw.row("-s"))
    hashes = set()
    for seed in ("0", "1", "2"):
        subprocess.run(command(raw), check=True, env=os.environ | {"PYTHONHASHSEED": seed})
        hashes.add((sha256_file(raw.root / "out/v.mp4"), sha256_file(raw.root / "out/a.json")))
    assert len(hashes) == 1


def test_two_runs_at_once_leave_one_whole_file(raw: Raw) -> None:
    raw.write(raw.row("-s"))
    both = [subprocess.Popen(command(raw)) for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    adapter = json.loads((raw.root / "out/a.json").read_text())
    assert sha256_file(raw.root / "out/v.mp4") == adapter["compiled"]["video_sha256"]
    assert sorted(path.name for path in (raw.root / "out").iterdir()) == ["a.json", "v.mp4"]


def test_a_killed_run_leaves_no_file_that_looks_finished(raw: Raw) -> None:
    write_video(raw.path("source.mp4"), constant(25, 1000), size=(640, 360))
    raw.write(raw.row("-s"))
    process = subprocess.Popen(command(raw))
    deadline = time.monotonic() + 300
    while not list((raw.root / "out").glob(".*")) and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert not [path for path in (raw.root / "out").iterdir() if not path.name.startswith(".")]
    subprocess.run(command(raw), check=True)
    assert (raw.root / "out/a.json").exists()


def test_a_full_disk_is_one_clear_error(raw: Raw) -> None:
    raw.write(raw.row("-s"))
    limited = f"ulimit -f 20; exec {' '.join(map(repr, command(raw)))}"
    done = subprocess.run(["bash", "-c", limited], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1
    assert not [path for path in (raw.root / "out").rglob("*") if path.is_file()]


def test_a_folder_that_cannot_be_written_is_one_clear_error(raw: Raw) -> None:
    raw.write(raw.row("-s"))
    (raw.root / "out").write_text("a file where the folder should be")
    done = subprocess.run(command(raw), capture_output=True, text=True)
    assert done.returncode == 1
    assert "cannot be written" in done.stderr and done.stderr.count("\n") == 1


def test_a_row_that_changed_since_the_run_began_is_refused(raw: Raw) -> None:
    raw.write(raw.row("-s"))
    done = subprocess.run(command(raw, "--recipe=0123"), capture_output=True, text=True)
    assert done.returncode == 1 and "changed since" in done.stderr


def test_a_source_that_takes_too_long_is_given_up(
    raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hfd.data.encode.time_limit", lambda *_: -1)
    assert "was not compiled in time" in refusal(raw)


def test_another_package_named_ffmpeg_is_no_matter(raw: Raw) -> None:
    (raw.root / "ffmpeg.py").write_text("VERSION = 1\n")
    raw.write(raw.row("-s"))
    environment = os.environ | {"PYTHONPATH": str(raw.root)}
    subprocess.run(command(raw), check=True, env=environment)
    assert (raw.root / "out/a.json").exists()
