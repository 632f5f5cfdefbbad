"""The unit reader: nothing lost, nothing added, order and pts exact."""

import subprocess

import imageio_ffmpeg
import numpy as np
import pytest

from hfd.errors import HfdError
from hfd.pcm import to_int16
from hfd.stream.reader import probe, read_units
from tests.stream.clips import PICTURE, number_of, sound


@pytest.mark.parametrize("unit_samples", [1280, 7680, 16000])
def test_every_sample_and_picture_comes_once_in_order(compiled, unit_samples):
    units = list(read_units(compiled("reader 中文.mp4", 37), unit_samples))
    pcm = np.concatenate([to_int16(unit.pcm[: unit.valid_samples]) for unit in units])
    assert np.array_equal(pcm, sound(37 * PICTURE))
    frames = [frame for unit in units for frame in unit.frames]
    assert [frame.index for frame in frames] == list(range(37))
    assert [number_of(frame.rgb) for frame in frames] == list(range(37))
    assert [unit.index for unit in units] == list(range(len(units)))
    for unit in units:
        assert unit.start == unit.index * unit_samples and len(unit.pcm) == unit_samples
        for frame in unit.frames:
            assert unit.start <= frame.pts_samples < unit.start + unit_samples


def test_only_the_last_unit_is_filled_with_zeros(compiled):
    units = list(read_units(compiled("fill.mp4", 37), 16000))  # 7.4 s
    assert [unit.valid_samples for unit in units] == [16000] * 7 + [6400]
    assert not units[-1].pcm[6400:].any()
    assert [unit.is_last for unit in units] == [False] * 7 + [True]


def test_a_file_that_ends_on_a_unit_edge_gets_no_extra_unit(compiled):
    units = list(read_units(compiled("edge.mp4", 20), 16000))
    assert len(units) == 4 and units[-1].is_last and units[-1].valid_samples == 16000


def test_the_tail_of_an_aac_track_is_cut_at_the_videos_end(compiled):
    path = compiled("aac.mp4", 10, codec="aac")
    assert sum(unit.valid_samples for unit in read_units(path, 1280)) == 10 * PICTURE
    assert len(list(read_units(path, 16000))) == 2


def test_sound_that_ends_early_is_silence_up_to_the_videos_end(compiled):
    path = compiled("short.mp4", 10, samples=20_000)
    pcm = np.concatenate([unit.pcm for unit in read_units(path, 16000)])
    assert np.array_equal(to_int16(pcm[:20_000]), sound(20_000))
    assert len(pcm) == 32_000 and not pcm[20_000:].any()


def test_a_rotated_picture_comes_upright(compiled, tmp_path):
    turned = tmp_path / "turned.mp4"
    subprocess.run(
        [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-display_rotation", "90"]
        + ["-i", compiled("flat.mp4", 5), "-c", "copy", turned],
        check=True,
    )
    info = probe(turned)
    assert (info.width, info.height) == (48, 64)
    frame = next(read_units(turned, 16000)).frames[1]
    assert frame.rgb.shape == (64, 48, 3)
    # A display rotation of +90 turns the video frame counter-clockwise: its left edge goes down.
    assert number_of(np.rot90(frame.rgb, -1)) == 1


@pytest.mark.parametrize(
    ("content", "reason"), [(b"", "cannot be read"), (b"no video at all" * 99, "cannot be read")]
)
def test_a_file_that_is_no_video_is_named(tmp_path, content, reason):
    path = tmp_path / "broken.mp4"
    path.write_bytes(content)
    with pytest.raises(HfdError, match=f"broken.mp4.*{reason}"):
        list(read_units(path, 1280))


def test_a_file_cut_short_is_refused_not_shortened(compiled, tmp_path):
    whole = compiled("whole.mp4", 50)
    faststart, cut = tmp_path / "faststart.mp4", tmp_path / "cut.mp4"
    subprocess.run(
        [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", whole]
        + ["-c", "copy", "-strict", "-2", "-movflags", "+faststart", faststart],
        check=True,
    )
    cut.write_bytes(faststart.read_bytes()[: int(faststart.stat().st_size * 0.6)])
    with pytest.raises(HfdError, match=r"cut\.mp4"):
        list(read_units(cut, 1280))


def test_a_file_off_the_5_fps_grid_is_refused(compiled, tmp_path):
    path = tmp_path / "6fps.mp4"
    subprocess.run(
        [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", compiled("five.mp4", 10)]
        + ["-vf", "fps=6", "-c:a", "copy", "-strict", "-2", path],
        check=True,
    )
    with pytest.raises(HfdError, match="not on the 5 fps grid"):
        list(read_units(path, 1280))
