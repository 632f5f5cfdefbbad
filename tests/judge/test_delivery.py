"""Delivery and rendering: what leaves the house is whole, marked and watchable."""

import contextlib
import json
import os
import shutil
import socket
import tarfile

import av
import numpy as np
import pytest
import yaml

import audit
import deliver
import render
import verify_results
from hfd.errors import HfdError
from hfd.judge.delivery import wrong_files
from hfd.judge.rendering import captions
from hfd.judge.rules import RULES


@pytest.fixture(scope="module")
def house(world, honest, tmp_path_factory):
    """A repository root with audited results of an honest model."""
    root = tmp_path_factory.mktemp("house")
    shutil.copytree(world.root / "data", root / "data")
    shutil.copytree(honest, root / "results" / "talker")
    models = {"models": {"talker": {"module": "test", "voice_origin": "native_talker"}}}
    (root / "models.yaml").write_text(yaml.safe_dump(models))
    run_audit(root)
    return root


@pytest.fixture(scope="module")
def delivered(house, tmp_path_factory):
    """A delivery that nobody has touched."""
    deliver.main(deliver_args(house))
    folder = tmp_path_factory.mktemp("delivered") / "results_talker"
    shutil.copytree(house / "out/results_talker", folder)
    return folder


def run_audit(root):
    audit.main(
        ["--manifest", str(root / "data/manifest.jsonl"), "--root", str(root),
         "--results", str(root / "results"), "--models-file", str(root / "models.yaml"),
         "--cache", str(root / "cache"), "--out", str(root / "results/audit"), "--jobs", "1"]
    )  # fmt: skip


def deliver_args(root, *more):
    return ["--model", "talker", "--results", str(root / "results"),
            "--audit", str(root / "results/audit"), "--out", str(root / "out"), *more]  # fmt: skip


def test_the_audit_writes_tables_pages_and_players_for_every_sample(house, world):
    out = house / "results/audit"
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert summary["coverage"]["talker"]["ok"] == len(world.samples)
    assert set(summary["rules"]["talker"]) == {rule.code for rule in RULES}
    for sample in world.samples:
        assert (out / "samples" / f"{sample.sample_id}.js").is_file()
        with av.open(str(out / "players/talker" / f"{sample.sample_id}.webm")) as player:
            stream = player.streams.audio[0]
            assert (stream.codec.name, stream.layout.name) == ("opus", "stereo")
    rows = (out / "samples.csv").read_text(encoding="utf-8").splitlines()
    assert len(rows) == len(world.samples) + 1 and "h1_gap_takeover" in rows[0]
    assert max(p.stat().st_size for p in [*out.glob("*.js"), *out.glob("samples/*.js")]) < 200_000


def test_the_player_has_the_user_left_and_the_model_right(house, world):
    sample = world.samples[4]
    path = house / "results/audit/players/talker" / f"{sample.sample_id}.webm"
    with av.open(str(path)) as player:
        sound = np.concatenate([f.to_ndarray() for f in player.decode(audio=0)], axis=1)
    part = json.loads((house / "results/talker" / sample.sample_id / "result.json").read_text())
    start, end = (round(part["segments"][-1][key] * 48000) for key in ("start", "end"))
    answer = sound[:, start:end]
    assert np.abs(answer[1]).mean() > 5 * np.abs(answer[0]).mean()


def test_a_delivery_is_verified_from_outside_and_a_changed_byte_is_named(house, capsys):
    deliver.main(deliver_args(house))
    folder = house / "out/results_talker"
    assert verify_results.main([str(folder)]) == 0
    wav = next(folder.glob("s04/assistant_audio.wav"))
    data = bytearray(wav.read_bytes())
    data[60_000] ^= 1
    wav.write_bytes(data)
    capsys.readouterr()
    assert verify_results.main([str(folder)]) == 1
    told = capsys.readouterr().out
    assert "s04/assistant_audio.wav" in told and "sample 29978 " in told and "SHA256SUMS" in told


def _unlisted(folder):
    (folder / "s04/second_try.wav").write_bytes(b"RIFF")


def _gone(folder):
    (folder / "s04/provenance.json").unlink()


def _dropped_whole(folder):
    shutil.rmtree(folder / "s04")


def _link_to_a_file(folder):
    (folder / "s04/result.json").rename(folder.parent / "elsewhere.json")
    (folder / "s04/result.json").symlink_to(folder.parent / "elsewhere.json")


def _link_to_a_folder(folder):
    (folder / "s04").rename(folder.parent / "elsewhere")
    (folder / "s04").symlink_to(folder.parent / "elsewhere")


def _pipe(folder):
    os.mkfifo(folder / "audit/pipe")


def _socket(folder):
    with socket.socket(socket.AF_UNIX) as server, contextlib.chdir(folder):
        server.bind("s")


def _no_sums(folder):
    (folder / "SHA256SUMS").unlink()


def _sums_without_one(folder):
    sums = folder / "SHA256SUMS"
    kept = [line for line in sums.read_text().splitlines() if "s04/trace" not in line]
    sums.write_text("\n".join(kept) + "\n")


def _sums_that_lead_outside(folder):
    with (folder / "SHA256SUMS").open("a") as sums:
        sums.write(f"{'0' * 64}  ../elsewhere\n")


def _sums_that_are_a_link(folder):
    (folder / "SHA256SUMS").rename(folder.parent / "sums")
    (folder / "SHA256SUMS").symlink_to(folder.parent / "sums")


def _sums_of_another_encoding(folder):
    sums = folder / "SHA256SUMS"
    sums.write_bytes(sums.read_bytes().decode().encode("utf-16"))


def _huge(folder):
    with (folder / "s04/assistant_audio.wav").open("r+b") as wav:
        wav.truncate(300 * 2**20)


DAMAGES = {
    _unlisted: "s04/second_try.wav is not listed in SHA256SUMS",
    _gone: "s04/provenance.json is missing",
    _dropped_whole: "s04/result.json is missing",
    _link_to_a_file: "s04/result.json is a link: a delivery holds plain files only",
    _link_to_a_folder: "s04 is a link: a delivery holds plain files only",
    _pipe: "audit/pipe is no plain file: a delivery holds plain files only",
    _socket: "s is no plain file: a delivery holds plain files only",
    _no_sums: "SHA256SUMS is missing",
    _sums_without_one: "s04/trace.jsonl.gz is not listed in SHA256SUMS",
    _sums_that_lead_outside: "'../elsewhere' is no file of the delivery",
    _sums_that_are_a_link: "SHA256SUMS is a link: a delivery holds plain files only",
    _sums_of_another_encoding: "SHA256SUMS 'utf-8' codec can't decode",
    _huge: "s04/assistant_audio.wav has more than 268435456 bytes",
}


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__.strip("_"))
def test_a_delivery_holds_plain_files_that_its_sums_list_and_nothing_else(
    damage, delivered, tmp_path
):
    folder = tmp_path / "results_talker"
    shutil.copytree(delivered, folder)
    damage(folder)
    wrong = list(wrong_files(folder))
    assert any(DAMAGES[damage] in line for line in wrong), wrong


def test_an_untouched_delivery_has_no_wrong_file(delivered):
    assert list(wrong_files(delivered)) == []


def test_a_delivery_contains_the_page_and_says_what_made_it(house):
    deliver.main(deliver_args(house))
    folder = house / "out/results_talker"
    about = json.loads((folder / "ABOUT.json").read_text())
    assert about["weights"] and about["hardware"] and about["made"] and about["code"]
    assert (folder / "audit/index.html").is_file() and (folder / "audit/assets/plotly.js").is_file()
    page = (folder / "audit/samples/s04.js").read_text(encoding="utf-8")
    assert '"files":"../s04"' in page and (folder / "audit/../s04/result.json").is_file()
    assert list((folder / "audit/players/talker").glob("*.webm"))


def test_two_deliveries_of_the_same_results_are_the_same_bytes(house):
    deliver.main(deliver_args(house))
    first = (house / "out/results_talker.tar.gz").read_bytes()
    deliver.main(deliver_args(house))
    assert (house / "out/results_talker.tar.gz").read_bytes() == first
    with tarfile.open(house / "out/results_talker.tar.gz") as tar:
        assert "results_talker/SHA256SUMS" in tar.getnames()


def test_an_incomplete_set_is_refused_or_marked(house):
    gone = house / "results/talker/s05"
    shutil.move(gone, house / "s05")
    try:
        with pytest.raises(HfdError, match="audit saw 8 results, there are 7"):
            deliver.main(deliver_args(house))
        run_audit(house)
        with pytest.raises(HfdError, match="1 missing"):
            deliver.main(deliver_args(house))
        deliver.main(deliver_args(house, "--anyway"))
        about = json.loads((house / "out/results_talker_INCOMPLETE/ABOUT.json").read_text())
        assert not about["complete"] and about["reasons"] == [
            "A14 fails (1 missing of 8, first s05)"
        ]
    finally:
        shutil.move(house / "s05", gone)
        run_audit(house)


def test_a_rendered_video_lasts_as_long_as_the_speech_and_carries_captions(house, world):
    sample = world.samples[4]
    out = house / "render"
    render.main(
        ["--model", "talker", "--manifest", str(house / "data/manifest.jsonl"), "--root",
         str(house), "--results", str(house / "results"), "--only", sample.sample_id,
         "--out", str(out)]
    )  # fmt: skip
    result = json.loads((house / "results/talker" / sample.sample_id / "result.json").read_text())
    with av.open(str(out / f"{sample.sample_id}.mp4")) as video:
        kinds = [stream.type for stream in video.streams]
        assert kinds == ["video", "audio", "subtitle"]
        expected = max(result["end_s"], sample.duration_seconds)
        assert abs(float(video.duration / av.time_base) - expected) < 0.25
    srt = (out / f"{sample.sample_id}.srt").read_text(encoding="utf-8")
    assert result["text_events"][0]["delta"].strip() in srt


def test_captions_show_the_running_turn_and_start_anew_after_a_pause():
    srt = captions([(1.0, "Hel"), (1.5, "lo. "), (1.6, "How"), (1.7, " are"), (9.0, "你好")])
    cues = [block.split("\n")[1:3] for block in srt.split("\n\n")]
    assert cues == [
        ["00:00:01,500 --> 00:00:01,700", "Hello."],  # there is no earlier moment with all of it
        ["00:00:01,700 --> 00:00:05,700", "How are"],
        ["00:00:09,000 --> 00:00:13,000", "你好"],
    ]
