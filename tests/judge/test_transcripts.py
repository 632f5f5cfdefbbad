"""The recogniser that ships in a package hears real speech, and each wav only once."""

import json

import numpy as np
import pytest
import soundfile

import transcripts
from hfd.errors import HfdError
from hfd.judge.spoken_words import normalised, word_error_rate
from hfd.judge.transcript import read_transcripts
from tests.judge.speech_clips import TEXT, reading


@pytest.fixture(scope="module")
def heard(tmp_path_factory):
    """Transcripts of one real reading, delivered once under its own and once under another text."""
    root = tmp_path_factory.mktemp("heard")
    (root / "manifest.jsonl").write_text(
        "".join(
            json.dumps({"sample_id": name, "task": "qa", "video": "v.mp4", "duration_seconds": 9})
            + "\n"
            for name in ("true", "silent", "chinese")
        )
    )
    sound = reading("two_cities", 24000)[: 24000 * 14]
    texts = {"true": " ".join(TEXT), "silent": "", "chinese": "这是最好的时代，这是最坏的时代"}
    for name, text in texts.items():
        folder = root / "results/m" / name
        folder.mkdir(parents=True)
        pcm = np.rint(20000 * sound).astype("<i2") + len(name)
        soundfile.write(folder / "assistant_audio.wav", pcm, 24000, subtype="PCM_16")
        (folder / "result.json").write_text(json.dumps({"text": text}), encoding="utf-8")
    out = root / "transcripts.jsonl"
    args = ["--manifest", str(root / "manifest.jsonl"), "--root", str(root), "--models", "m",
            "--results", str(root / "results"), "--out", str(out)]  # fmt: skip
    transcripts.main(args)
    return args, out


def test_real_speech_is_heard_well_enough_to_judge_a_text(heard):
    rows = list(read_transcripts(heard[1]).heard.values())
    assert len(rows) == 1, "no text and Chinese text are not for an English recogniser"
    said, got = normalised(" ".join(TEXT)), normalised(rows[0]["text"])
    assert word_error_rate(said[:25], got[:25]) <= 0.35
    assert rows[0]["avg_logprob"] > -0.9


def test_a_second_run_hears_nothing_again(heard, monkeypatch):
    before = heard[1].read_bytes()
    monkeypatch.setattr(transcripts, "recogniser", None)
    transcripts.main(heard[0])
    assert heard[1].read_bytes() == before


def test_a_wav_that_was_heard_without_times_is_heard_again(heard, tmp_path):
    now = json.loads(heard[1].read_text())
    older = {key: value for key, value in now.items() if key != "words"}
    out = tmp_path / "transcripts.jsonl"
    out.write_text(json.dumps(older) + "\n")
    args = heard[0][:-1] + [str(out)]
    transcripts.main(args)
    assert json.loads(out.read_text())["words"] == now["words"] != []


@pytest.mark.parametrize("words", [5, [["0", "1", "a"]], [[0, 1]], [[0, 1, None]], ["word"]])
def test_words_without_times_are_one_error_with_its_line(tmp_path, words):
    row = {"wav_sha256": "0" * 64, "text": "a", "avg_logprob": -0.1, "words": words}
    path = tmp_path / "m.jsonl"
    path.write_text(json.dumps(row) + "\n")
    with pytest.raises(HfdError, match="no transcript line") as raised:
        read_transcripts(path)
    assert str(raised.value.file).endswith("m.jsonl:1")
