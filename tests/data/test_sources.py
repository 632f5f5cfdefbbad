"""What real cameras, phones, recorders and editors deliver: each line of docs/sources.md."""

from __future__ import annotations

import re
import subprocess
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
import soundfile

from hfd.errors import HfdError

from .conftest import Raw
from .media import (
    FFMPEG,
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

SIX_SECONDS = ("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=6")


def compile_video(raw: Raw, name: str) -> tuple[Path, list[str]]:
    """Compile the row over data/raw/<name>; gives the video and what was changed."""
    video, adapter = raw.compile(raw.row(video=f"data/raw/{name}"))
    return video, adapter["compiled"]["changes"]


def refusal(raw: Raw, name: str, **changes: Any) -> str:
    with pytest.raises(HfdError) as caught:
        raw.compile(raw.row(video=f"data/raw/{name}", **changes))
    assert not [path for path in (raw.root / "out").rglob("*") if path.is_file()]
    return str(caught.value)


def decoded_rgb(path: Path) -> list[np.ndarray]:
    with av.open(str(path)) as container:
        return [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]


# --- times -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("container", "video", "sound"),
    [
        ("mp4", "libx264", "aac"),
        ("mov", "libx264", "aac"),
        ("mkv", "libx264", "aac"),
        ("ts", "libx264", "aac"),
        ("ts", "libx264", "mp2"),
        ("m2ts", "libx264", "ac3"),
        ("mts", "libx264", "ac3"),
        ("vob", "mpeg2video", "ac3"),
        ("mpg", "mpeg2video", "mp2"),
    ],
)
def test_a_video_that_begins_after_its_sound_is_as_late_in_every_container(
    container: str, video: str, sound: str, raw: Raw
) -> None:
    source, late = raw.path("source.mp4"), raw.path(f"late.{container}")
    write_video(source, constant(25, 150))
    if video != "libx264":
        source = raw.path("tape.mov")
        run_ffmpeg("-i", raw.path("source.mp4"), "-c:v", video, "-q:v", "2", source)
    run_ffmpeg(
        *("-itsoffset", "1", "-i", source, "-f", "lavfi", "-i", "sine=duration=7"),
        *("-map", "0:v", "-map", "1:a", "-c:v", "copy", "-c:a", sound, late),
    )
    compiled, changes = compile_video(raw, late.name)
    numbers = decoded_numbers(compiled)
    assert numbers[:12] == [0, 0, 0, 0, 0, 0, 5, 10, 15, 20, 25, 30]
    assert len(numbers) == 35 + 15
    assert changes == ["the video begins 1.00 s after its sound: its first frame is held"]


def test_a_transport_stream_whose_clock_wraps_is_read_on(raw: Raw) -> None:
    write_video(raw.path("source.mp4"), constant(25, 150))
    run_ffmpeg(
        *("-i", raw.path("source.mp4"), "-c", "copy", "-output_ts_offset", "95440"),
        raw.path("wraps.ts"),
    )
    assert decoded_numbers(compile_video(raw, "wraps.ts")[0])[:30] == list(range(0, 150, 5))


def test_two_transport_streams_in_one_file_are_refused_by_the_jump(raw: Raw) -> None:
    run_ffmpeg(*SIX_SECONDS, "-c:v", "libx264", raw.path("one.ts"))
    one = raw.path("one.ts").read_bytes()
    raw.path("two.ts").write_bytes(one + one)
    assert re.search(
        r"two.ts: its clock jumps back by 5.9\d s after 5.9\d s", refusal(raw, "two.ts")
    )


def test_avi_shows_as_many_frames_as_the_same_content_in_mp4(raw: Raw) -> None:
    write_video(raw.path("source.mp4"), constant(25, 150))
    for b_frames in ("0", "2"):
        run_ffmpeg(
            *("-i", raw.path("source.mp4"), "-c:v", "libx264", "-bf", b_frames, "-qp", "10"),
            raw.path("no_pts.avi"),
        )
        numbers = decoded_numbers(compile_video(raw, "no_pts.avi")[0])
        assert numbers == [*range(0, 150, 5), *[149] * 15]


def test_bare_codec_data_has_no_times_and_is_refused(raw: Raw) -> None:
    run_ffmpeg(*SIX_SECONDS, "-c:v", "libx264", raw.path("bare.h264"))
    assert "has no time stamps (bare h264)" in refusal(raw, "bare.h264")


def test_a_subtitle_longer_than_the_video_does_not_make_it_cut_short(raw: Raw) -> None:
    raw.path("cue.srt").write_text("1\n00:00:01,000 --> 00:00:12,000\nhello\n")
    for sound in ((), ("-f", "lavfi", "-i", "sine=duration=6")):
        run_ffmpeg(
            *SIX_SECONDS, *sound, "-i", raw.path("cue.srt"), *("-c:v", "libx264"),
            *("-map", "0", "-map", "1", *(("-map", "2") if sound else ())), raw.path("cue.mkv"),
        )  # fmt: skip
        assert len(decoded_luma(compile_video(raw, "cue.mkv")[0])) == 45


def test_a_file_that_is_cut_short_is_refused_in_spite_of_a_long_subtitle(raw: Raw) -> None:
    raw.path("cue.srt").write_text("1\n00:00:00,500 --> 00:00:12,000\nhello\n")
    run_ffmpeg(
        *SIX_SECONDS, "-i", raw.path("cue.srt"), "-c:v", "libx264", "-map", "0", "-map", "1",
        raw.path("whole.mkv"),
    )  # fmt: skip
    whole = raw.path("whole.mkv").read_bytes()
    raw.path("cut.mkv").write_bytes(whole[: len(whole) * 6 // 10])
    text = refusal(raw, "cut.mkv")
    assert "header promises 6.00 s" in text or "damaged" in text


# --- pixels ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("full.mp4", ("-pix_fmt", "yuvj420p", "-c:v", "libx264", "-qp", "4")),
        ("full.mkv", ("-pix_fmt", "yuvj444p", "-c:v", "libx264", "-qp", "4")),
        ("camera.avi", ("-pix_fmt", "yuvj420p", "-c:v", "mjpeg", "-q:v", "2")),
        ("camera422.avi", ("-pix_fmt", "yuvj422p", "-c:v", "mjpeg", "-q:v", "2")),
        ("screen.mkv", ("-pix_fmt", "gbrp", "-c:v", "libx264rgb", "-qp", "0")),
        ("screen.avi", ("-pix_fmt", "bgr24", "-c:v", "rawvideo")),
        ("gray.avi", ("-pix_fmt", "gray", "-c:v", "mjpeg", "-q:v", "2")),
    ],
)
def test_full_range_becomes_limited_and_the_colours_stay(
    name: str, options: tuple[str, ...], raw: Raw
) -> None:
    bars = ("-f", "lavfi", "-i", "smptehdbars=size=320x180:rate=25:duration=2")
    run_ffmpeg(*bars, *options, raw.path(name))
    compiled, changes = compile_video(raw, name)
    with av.open(str(compiled)) as container:
        stream = container.streams.video[0]
        assert stream.pix_fmt == "yuv420p", "yuvj420p is full range"
    before, after = decoded_rgb(raw.path(name))[0], decoded_rgb(compiled)[0]
    assert np.abs(before.astype(int) - after).mean() < 2.5
    assert any("limited range" in change for change in changes)


def test_limited_range_is_left_as_it_is(raw: Raw) -> None:
    assert compile_video(raw, "source.mp4")[1] == []


def test_a_size_that_changes_in_the_file_is_refused_by_its_second(raw: Raw) -> None:
    sizes = {"a": "320:180", "b": "180:320"}
    for name, size in sizes.items():
        run_ffmpeg(
            *SIX_SECONDS, "-t", "3", "-vf", f"scale={size}", "-c:v", "libvpx",
            raw.path(f"{name}.webm"),
        )  # fmt: skip
    raw.path("list.txt").write_text("file a.webm\nfile b.webm\n")
    run_ffmpeg("-f", "concat", "-i", raw.path("list.txt"), "-c", "copy", raw.path("ab.webm"))
    text = refusal(raw, "ab.webm")
    assert "changes its size at 3.00 s, from 320x180 to 180x320" in text


def test_a_pixel_format_that_changes_in_the_file_keeps_its_times(raw: Raw) -> None:
    numbers = write_video(raw.path("source.mp4"), constant(25, 75))
    for name, pixels in (("a", "yuv420p"), ("b", "yuvj420p")):
        run_ffmpeg("-i", numbers, "-pix_fmt", pixels, "-c:v", "mjpeg", "-q:v", "2",
                   "-strict", "-1", raw.path(f"{name}.mov"))  # fmt: skip
    raw.path("list.txt").write_text("file a.mov\nfile b.mov\n")
    run_ffmpeg("-f", "concat", "-i", raw.path("list.txt"), "-c", "copy", raw.path("ab.mov"))
    shown = decoded_numbers(compile_video(raw, "ab.mov")[0])
    assert shown[:30] == [*range(0, 75, 5)] * 2


@pytest.mark.parametrize(("transfer", "name"), [(16, "PQ"), (18, "HLG")])
@pytest.mark.parametrize("container", ["mp4", "mkv", "ts"])
def test_hdr_that_only_decoded_frames_tell_is_refused(
    container: str, transfer: int, name: str, raw: Raw
) -> None:
    run_ffmpeg(
        *("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=1"),
        *("-c:v", "libx265", "-pix_fmt", "yuv420p10le"),
        *("-x265-params", f"log-level=none:atc-sei={transfer}", raw.path(f"hdr.{container}")),
    )
    assert re.search(rf"is HDR video, {name} .* at 0.00 s", refusal(raw, f"hdr.{container}"))


def test_hdr_that_begins_later_is_refused_by_its_second(raw: Raw) -> None:
    for name, more in (("a", ""), ("b", ":atc-sei=16")):
        run_ffmpeg(
            *("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=25:duration=1"),
            *("-c:v", "libx265", "-pix_fmt", "yuv420p10le"),
            *("-x265-params", f"log-level=none{more}", raw.path(f"{name}.ts")),
        )
    raw.path("list.txt").write_text("file a.ts\nfile b.ts\n")
    run_ffmpeg("-f", "concat", "-i", raw.path("list.txt"), "-c", "copy", raw.path("ab.mkv"))
    assert re.search(r"is HDR video, PQ .* at (0.[89]|1.0)\d s", refusal(raw, "ab.mkv"))


def comb(luma: np.ndarray) -> float:
    """How much neighbouring lines differ more than lines of one field: above 1 is combed."""
    lines = luma.astype(int)
    across = np.abs(lines[1:-1] - lines[:-2]).mean()
    within = np.abs(lines[2:] - lines[:-2]).mean()
    return float(across / max(within, 0.1))


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("tape.mpg", ("-c:v", "mpeg2video", "-q:v", "2", "-flags", "+ilme+ildct")),
        ("camera.mts", ("-c:v", "libx264", "-qp", "4", "-flags", "+ilme+ildct")),
    ],
)
def test_interlaced_video_is_deinterlaced_and_the_record_says_so(
    name: str, codec: tuple[str, ...], raw: Raw
) -> None:
    """A bar that moves 8 pixels a field: combed in every woven frame, whole in every other."""
    shape = "lum='if(lt(mod(X-N*8+3200\\,320)\\,40)\\,220\\,60)':cb=128:cr=128"
    source = ("-f", "lavfi", "-i", f"nullsrc=s=320x180:r=50:d=2,geq={shape}")
    run_ffmpeg(*source, "-vf", "tinterlace=interleave_top", *codec, raw.path(name))
    woven = max(comb(luma) for luma in decoded_luma(raw.path(name))[2:40])
    compiled, changes = compile_video(raw, name)
    luma = decoded_luma(compiled)
    assert woven > 1.5 and max(comb(picture) for picture in luma) < 1.2
    assert len(luma) == 25 and any("deinterlaced (bwdif)" in change for change in changes)


@pytest.mark.parametrize(
    ("options", "turn"),
    [
        (("-display_rotation", "90"), lambda picture: np.rot90(picture)),
        (("-display_rotation", "180"), lambda picture: np.rot90(picture, 2)),
        (("-display_hflip",), lambda picture: picture[:, ::-1]),
        (("-display_vflip",), lambda picture: picture[::-1]),
    ],
)
def test_a_display_matrix_is_obeyed(options: tuple[str, ...], turn: Any, raw: Raw) -> None:
    run_ffmpeg(*options, "-i", raw.path("source.mp4"), "-c", "copy", raw.path("turned.mp4"))
    compiled, changes = compile_video(raw, "turned.mp4")
    first = decoded_luma(compiled)[0].astype(int)
    assert np.abs(first - turn(coded_picture(0, 320, 180))).mean() < 3
    assert any("display matrix" in change for change in changes)


def test_a_video_of_wide_pixels_is_scaled_to_square_ones(raw: Raw) -> None:
    run_ffmpeg(
        *SIX_SECONDS, "-vf", "scale=240:180,setsar=4/3", "-c:v", "libx264", raw.path("dv.mp4")
    )
    compiled, changes = compile_video(raw, "dv.mp4")
    assert decoded_luma(compiled)[0].shape == (180, 320)
    assert changes == ["scaled from 240x180 to 320x180"]


# --- recordings --------------------------------------------------------------------------------


def compile_recording(raw: Raw, name: str, start: float, end: float, **more: Any) -> np.ndarray:
    """Compile with second = data/raw/<name>[start:end]; gives what is heard, as floats."""
    cut = {"audio": f"data/raw/{name}", "source_start": start, "source_end": end}
    length = {"start": 6.1, "end": 6.1 + end - start}
    video, _ = raw.compile(raw.row(second=cut | length | more))
    return decoded_pcm(video)[16_000 : 16_000 + round((end - start) * 16_000)] / 32768


def piped(raw: Raw, name: str, *codec: str) -> Path:
    """A recording as a recorder writes it into a pipe: nothing can be corrected afterwards."""
    command = [FFMPEG, "-nostdin", "-v", "error"]
    command += ["-i", str(raw.path("second.wav")), *codec, "-"]
    raw.path(name).write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)
    return raw.path(name)


@pytest.mark.parametrize(
    ("name", "codec"),
    [
        ("piped.flac", ("-c:a", "flac", "-f", "flac")),
        ("piped.wav", ("-c:a", "pcm_s16le", "-f", "wav")),
        ("piped.au", ("-c:a", "pcm_s16be", "-f", "au")),
    ],
)
@pytest.mark.parametrize("end", [1.96, 2.0])
def test_a_recording_whose_header_does_not_know_its_length_is_cut_exactly(
    end: float, name: str, codec: tuple[str, ...], raw: Raw
) -> None:
    piped(raw, name, *codec)
    whole, _ = soundfile.read(raw.path("second.wav"))
    heard = compile_recording(raw, name, 0.5, end)
    assert np.abs(heard - whole[8000 : round(end * 16_000)]).max() < 1e-4


def test_beyond_the_recording_is_said_only_when_it_is(raw: Raw) -> None:
    piped(raw, "piped.flac", "-c:a", "flac", "-f", "flac")
    cut = {"audio": "data/raw/piped.flac", "source_start": 0.5, "source_end": 2.7}
    text = refusal(raw, "source.mp4", second=cut | {"start": 6.1, "end": 8.3})
    assert "2.7 s lies beyond the recording, which has 2.000 s" in text


@pytest.mark.parametrize(
    ("format_", "subtype"),
    [("WAV", "GSM610"), ("WAV", "MS_ADPCM"), ("WAV", "IMA_ADPCM"), ("OGG", "VORBIS"),
     ("OGG", "OPUS"), ("MP3", "MPEG_LAYER_III"), ("FLAC", "PCM_16"), ("AIFF", "PCM_16")],
)  # fmt: skip
def test_a_recording_is_cut_as_out_of_a_whole_decode(format_: str, subtype: str, raw: Raw) -> None:
    path = raw.path(f"any.{format_.lower()}")
    soundfile.write(path, noise(2.0, seed=2), 16_000, format=format_, subtype=subtype)
    with soundfile.SoundFile(path) as stream:
        whole = stream.read(32_000)
    heard = compile_recording(raw, path.name, 0.7, 1.2)
    assert np.abs(heard - whole[11_200:19_200]).max() < 1e-4


def test_real_speech_as_mp3_is_cut_as_out_of_a_whole_decode(raw: Raw) -> None:
    samples, rate = soundfile.read(speech("beckett.wav"))
    soundfile.write(raw.path("real.mp3"), samples, rate, format="MP3", subtype="MPEG_LAYER_III")
    whole, _ = soundfile.read(raw.path("real.mp3"))
    heard = compile_recording(raw, "real.mp3", 1.2, 1.7)
    assert np.abs(heard - whole[round(1.2 * rate) : round(1.7 * rate)]).max() < 1e-4


def test_a_header_of_no_samples_is_told(raw: Raw) -> None:
    data = bytearray(raw.path("second.wav").read_bytes())
    size = data.index(b"data") + 4
    data[size : size + 4] = bytes(4)
    raw.path("second.wav").write_bytes(data)
    assert "has no samples, by its header. " in refusal(raw, "source.mp4")


def antiphase(raw: Raw, extra: float = 0.0) -> None:
    left = noise(2.0, seed=2)
    write_wav(raw.path("second.wav"), np.stack([left, -left * (1 - extra)], axis=1))


@pytest.mark.parametrize("extra", [0.0, 0.02])
def test_antiphase_stereo_is_refused_with_the_remedy(extra: float, raw: Raw) -> None:
    antiphase(raw, extra)
    text = refusal(raw, "source.mp4")
    assert "cancel each other out" in text and "channel: left" in text
    assert "duplex.inputs[1].channel" in text


@pytest.mark.parametrize(("channel", "sign"), [("left", 1), ("right", -1)])
@pytest.mark.parametrize("place", ["question", "row"])
def test_a_channel_can_be_chosen(place: str, channel: str, sign: int, raw: Raw) -> None:
    antiphase(raw)
    row = raw.row(second={"channel": channel} if place == "question" else {})
    if place == "row":
        write_wav(raw.path("first.wav"), np.stack([noise(2.0, seed=1)] * 2, axis=1))
        row["channel"] = channel
    video, adapter = raw.compile(row)
    heard = decoded_pcm(video)[16_000:24_000] / 32768
    assert np.abs(heard - sign * noise(2.0, seed=2)[8000:16_000]).max() < 1e-4
    assert f"second.wav: two channels to one, the {channel} one" in adapter["compiled"]["changes"]


def test_a_channel_that_is_not_there_is_refused(raw: Raw) -> None:
    assert "has one channel" in refusal(raw, "source.mp4", second={"channel": "right"})
    with pytest.raises(HfdError, match=r"manifest.jsonl:1: duplex.inputs\[1\].channel: is 'both'"):
        raw.read(raw.row(second={"channel": "both"}))


def test_one_quiet_channel_is_no_antiphase(raw: Raw) -> None:
    write_wav(raw.path("second.wav"), np.stack([noise(2.0, seed=2), np.zeros(32_000)], axis=1))
    heard = compile_recording(raw, "second.wav", 0.5, 1.0)
    assert np.abs(heard - noise(2.0, seed=2)[8000:16_000] / 2).max() < 1e-4


def test_fractional_rates_keep_their_times(raw: Raw) -> None:
    times = constant(Fraction(30_000, 1001), 64)
    write_video(raw.path("source.mp4"), times)
    shown = decoded_numbers(compile_video(raw, "source.mp4")[0])[:10]
    assert shown == [max(n for n, t in enumerate(times) if t <= Fraction(k, 5)) for k in range(10)]


def test_every_test_that_the_page_names_is_there() -> None:
    here = Path(__file__).parent
    page = (here.parents[1] / "docs/sources.md").read_text(encoding="utf-8")
    rows = [line for line in page.splitlines() if line.startswith("| ") and "---" not in line]
    named = 0
    for row in rows:
        names = re.findall(r"`(?:([\w./]+)::)?(test_\w+)`", row.split(" | ")[-1])
        assert names or row.endswith("| test |") or row.endswith("| the same |"), row
        for file, name in names:
            text = (here / (file or "test_sources.py")).read_text(encoding="utf-8")
            assert f"def {name}(" in text, (file, name)
            named += 1
    assert named > 40
