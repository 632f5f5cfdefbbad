"""``scripts/run_roma.py`` on compiled files: the command line the team knows, four files each."""

import json

import av
import numpy as np
import pytest
import soundfile

import run_roma
from tests.models.roma.helpers import TINY, make_units

pytestmark = pytest.mark.heavy


def write_clip(path, units):
    """A compiled file of these seconds: H.264 at 5 fps and FLAC at 16 kHz in mp4."""
    with av.open(str(path), "w", options={"strict": "experimental"}) as container:
        first = units[0].frames[0].image
        video = container.add_stream("libx264", rate=5)
        video.width, video.height, video.pix_fmt = first.width, first.height, "yuv420p"
        audio = container.add_stream("flac", rate=16_000, layout="mono")
        for unit in units:
            for frame in unit.frames:
                picture = frame.image.reformat(format="yuv420p")
                picture.pts = frame.index
                container.mux(video.encode(picture))
            pcm = (unit.pcm * 32767).astype(np.int16)[None]
            block = av.AudioFrame.from_ndarray(pcm, format="s16", layout="mono")
            block.sample_rate, block.pts = 16_000, unit.start
            container.mux(audio.encode(block))
        container.mux(video.encode(None))
        container.mux(audio.encode(None))


@pytest.fixture
def data(tmp_path):
    (tmp_path / "videos").mkdir()
    rows = []
    for name in ("样本 一", "two"):
        write_clip(tmp_path / "videos" / f"{name}.mp4", make_units(3, width=96, height=64))
        rows.append(
            {
                "sample_id": name,
                "task": "other",
                "video": f"videos/{name}.mp4",
                "duration_seconds": 3.0,
            }
        )
    manifest = tmp_path / "manifest.jsonl"
    manifest.write_text("\n".join(json.dumps(row, ensure_ascii=False) for row in rows))
    return tmp_path


def results(data):
    return sorted(path.parent.name for path in (data / "out").glob("*/result.json"))


def command(data, snapshot, *more):
    settings = [f"{key}={value}" for key, value in TINY.items()]
    return run_roma.main(
        ["--model-path", str(snapshot), "--manifest", str(data / "manifest.jsonl")]
        + ["--output-root", str(data / "out"), "--root", str(data), "--two-stage"]
        + ["--set", "threshold=0.0", *settings, *more]
    )


def test_every_sample_gets_text_native_speech_and_times(data, snapshot, capsys):
    assert command(data, snapshot) == 0
    for name in ("样本 一", "two"):
        folder = data / "out" / name
        result = json.loads((folder / "result.json").read_text())
        provenance = json.loads((folder / "provenance.json").read_text())
        wav, rate = soundfile.read(folder / "assistant_audio.wav")
        assert result["status"] == "ok" and result["text"] and rate == 24_000
        assert result["voice_origin"] == "native_talker" and result["clock"] == "virtual"
        # The first second exists at 1.0: nothing may be said before, and speech follows text.
        assert 1.0 <= result["first_token_s"] <= result["first_audio_s"]
        assert np.abs(wav).max() > 0.01 and not np.any(wav[:24_000])
        detail = provenance["model"]["detail"]
        assert detail["acceleration"] == "eager"
        assert provenance["model"]["dtypes"]["float32"]
        assert provenance["model"]["settings"]["threshold"] == 0.0
    assert results(data) == ["two", "样本 一"]
    capsys.readouterr()
    assert command(data, snapshot) == 0
    assert capsys.readouterr().out.count("kept") == 2


def test_a_sample_that_cannot_be_taken_fails_alone_and_leaves_nothing(data, snapshot):
    write_clip(data / "videos" / "two.mp4", make_units(5, width=96, height=64))
    assert command(data, snapshot, "max_media_s=4.0") == 1
    assert results(data) == ["样本 一"]
