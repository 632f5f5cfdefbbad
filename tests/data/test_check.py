"""Every rule of the check passes an honest sample and fails a planted fault."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import av
import jsonschema
import numpy as np
import pytest
import yaml

from hfd.data.check import Subject, check_sample
from hfd.data.deny_list import read_deny_list
from hfd.errors import HfdError
from hfd.files import sha256_bytes, sha256_file
from hfd.pcm import to_int16
from hfd.stream.reader import read_units

from .conftest import Raw
from .media import constant, decoded_pcm, run_ffmpeg, write_video, write_wav

SCHEMA = yaml.safe_load(
    (Path(__file__).parents[2] / "workflow/schemas/check.schema.yaml").read_text(encoding="utf-8")
)


def check(subject: Subject, **options: Any) -> dict[str, Any]:
    """The verdict, which always fits its schema."""
    verdict = check_sample(subject, **options)
    jsonschema.validate(verdict, SCHEMA)
    return verdict


def wrong(verdict: dict[str, Any]) -> dict[str, str]:
    """Rules that are not ok, with their status."""
    return {f["rule"]: f["status"] for f in verdict["findings"] if f["status"] != "ok"}


def message(verdict: dict[str, Any], rule: str) -> str:
    return next(f["message"] for f in verdict["findings"] if f["rule"] == rule)


@pytest.fixture
def subject(raw: Raw) -> Subject:
    """An honest sample, compiled here."""
    video, adapter = raw.compile(raw.row())
    return Subject("s", "hesitation", video, raw.root / "out/a.json", adapter["duration_seconds"])


def delivered(subject: Subject, *arguments: str | Path, name: str = "new.mp4") -> Subject:
    """The sample with its video put through ffmpeg, and an adapter without our record."""
    video = subject.video.with_name(name)
    run_ffmpeg("-i", subject.video, *arguments, "-map_metadata", "-1", video)
    return replace(subject, video=video, adapter=foreign_adapter(subject))


def foreign_adapter(subject: Subject, shift: float = 0.0) -> Path:
    value = json.loads(subject.adapter.read_text(encoding="utf-8"))
    events = [
        {"role": e["role"], "start": e["start"] + shift, "end": e["end"] + shift}
        for e in value["events"]
    ]
    path = subject.adapter.with_name(f"foreign{shift}.json")
    path.write_text(json.dumps({"events": events}))
    return path


def with_sound(subject: Subject, pcm: np.ndarray, codec: str = "flac") -> Subject:
    """The sample with another sound track."""
    wav = write_wav(subject.video.with_name("other.wav"), pcm)
    return delivered(
        subject,
        *("-i", wav, "-map", "0:v", "-map", "1:a", "-c:v", "copy", "-c:a", codec),
        *("-strict", "experimental"),
    )


AAC = ("-c:v", "copy", "-c:a", "aac")
AGAIN = ("-vf", "tpad=stop_mode=clone:stop_duration=3", "-af", "apad=pad_dur=3")


def test_an_honest_sample_passes_every_rule(subject: Subject) -> None:
    verdict = check(subject)
    assert wrong(verdict) == {}
    assert {f["rule"] for f in verdict["findings"]} >= {
        *("adapter", "readable", "format", "grid", "sound_times", "length", "duration"),
        *("padding", "events", "sound", "deny_list", "record"),
    }
    assert (verdict["frames"], verdict["samples"], verdict["media_s"]) == (25, 80_000, 5.0)
    assert (verdict["width"], verdict["height"]) == (320, 180)


def test_the_hashes_are_those_of_what_a_model_is_sent(subject: Subject) -> None:
    verdict = check(subject)
    assert verdict["video_sha256"] == sha256_file(subject.video)
    units = list(read_units(subject.video, 1280))
    pcm = b"".join(to_int16(unit.pcm[: unit.valid_samples]).tobytes() for unit in units)
    digests = b"".join(frame.digest() for unit in units for frame in unit.frames)
    assert verdict["pcm_sha256"] == sha256_bytes(pcm)
    assert verdict["frames_sha256"] == sha256_bytes(digests)


@pytest.mark.parametrize("arguments", [AAC, ("-c", "copy")])
def test_a_delivered_sample_passes_with_aac_and_without_a_stamp(
    arguments: tuple[str, ...], subject: Subject
) -> None:
    verdict = check(delivered(subject, *arguments))
    assert wrong(verdict) == {}
    assert verdict["samples"] == 80_000


def test_a_reencoded_tail_still_counts_as_frozen(subject: Subject) -> None:
    again = delivered(subject, "-c:v", "libx264", "-crf", "23", "-c:a", "aac")
    assert wrong(check(again)) == {}


@pytest.mark.parametrize("codec", ["flac", "aac"])
def test_a_file_padded_twice_fails(codec: str, subject: Subject) -> None:
    twice = delivered(subject, *AGAIN, "-c:a", codec, "-strict", "experimental")
    verdict = check(replace(twice, duration_seconds=8.0))
    assert wrong(verdict) == {"padding": "fail"}
    assert "padded twice" in message(verdict, "padding")


def test_a_stamped_file_that_was_padded_again_fails(subject: Subject) -> None:
    again = subject.video.with_name("again.mp4")
    run_ffmpeg(*("-i", subject.video, *AGAIN, "-c:a", "flac"), *("-strict", "experimental", again))
    verdict = check(replace(subject, video=again, duration_seconds=8.0))
    assert "+3.0 s against the stamp" in message(verdict, "padding")


def test_a_file_without_tail_fails(subject: Subject) -> None:
    cut = delivered(subject, "-t", "2", "-c:v", "libx264", "-c:a", "flac", "-strict", "-2")
    verdict = check(replace(cut, duration_seconds=2.0))
    assert wrong(verdict)["padding"] == "fail"
    assert "no 3 s tail" in message(verdict, "padding")


def test_silence_alone_is_no_tail(raw: Raw) -> None:
    write_video(raw.path("source.mp4"), constant(25, 200))
    video, _ = raw.compile(raw.row())
    long = Subject("s", "hesitation", video, raw.root / "out/a.json", 0)
    moving = delivered(long, "-t", "6", "-c:v", "libx264", "-c:a", "flac", "-strict", "-2")
    assert "frozen video frames at the end" in message(check(moving), "padding")


def test_sound_in_the_tail_fails(subject: Subject) -> None:
    pcm = decoded_pcm(subject.video).copy()
    pcm[-4000:-2000] = 5000
    verdict = check(with_sound(subject, pcm))
    assert "no 3 s tail: sound until" in message(verdict, "padding")


def test_a_still_video_is_suspect_not_wrong(raw: Raw) -> None:
    still_life = "color=gray:size=320x180:rate=25:duration=6"
    run_ffmpeg("-f", "lavfi", "-i", still_life, "-c:v", "libx264", raw.path("source.mp4"))
    video, adapter = raw.compile(raw.row())
    still = Subject("s", "hesitation", video, raw.root / "out/a.json", adapter["duration_seconds"])
    assert wrong(check(still)) == {}, "the stamp is certain"
    assert wrong(check(delivered(still, "-c", "copy"))) == {"padding": "suspect"}


@pytest.mark.parametrize("shift", [5.1, 1.0])
def test_a_forgotten_video_offset_fails(shift: float, subject: Subject) -> None:
    late = replace(delivered(subject, "-c", "copy"), adapter=foreign_adapter(subject, shift))
    verdict = check(late)
    assert "fail" in wrong(verdict).values()
    assert any("video_offset" in finding["message"] for finding in verdict["findings"])


def test_the_full_first_question_fails(subject: Subject) -> None:
    pcm = decoded_pcm(subject.video).copy()
    pcm[9600:14000] = pcm[16000:20400]
    verdict = check(with_sound(subject, pcm))
    assert wrong(verdict) == {"sound": "fail"}
    assert "between prefix and correction" in message(verdict, "sound")


def test_the_source_s_own_sound_fails(subject: Subject) -> None:
    pcm = decoded_pcm(subject.video).copy()
    pcm[24000:32000] += 400
    assert wrong(check(with_sound(subject, pcm))) == {"sound": "fail"}


def test_a_silent_track_fails(subject: Subject) -> None:
    verdict = check(with_sound(subject, np.zeros(80_000, np.int16)))
    assert "nothing is heard in first_question and second_question" in message(verdict, "sound")


@pytest.mark.parametrize(
    ("duration", "status"), [(8.0, "fail"), (2.0, "fail"), (5.05, "suspect"), (5.0005, None)]
)
def test_a_wrong_duration_is_told(duration: float, status: str | None, subject: Subject) -> None:
    assert wrong(check(replace(subject, duration_seconds=duration))).get("duration") == status


@pytest.mark.parametrize(
    ("samples", "status"), [(80_000 + 3000, "suspect"), (72_000, "fail"), (90_000, "fail")]
)
def test_sound_of_another_length_is_told(samples: int, status: str, subject: Subject) -> None:
    pcm = np.resize(np.append(decoded_pcm(subject.video), np.zeros(20_000, np.int16)), samples)
    assert wrong(check(with_sound(subject, pcm)))["length"] == status


@pytest.mark.parametrize(
    ("arguments", "rule"),
    [
        (("-r", "6", "-c:v", "libx264", "-c:a", "copy"), "grid"),
        (("-c:v", "copy", "-ar", "48000", "-c:a", "aac"), "format"),
        (("-c:v", "copy", "-ac", "2", "-c:a", "aac"), "format"),
        (("-c:v", "copy", "-an"), "readable"),
        (("-map", "0", "-map", "0:a", "-c", "copy"), "format"),
    ],
)
def test_another_format_fails(arguments: tuple, rule: str, subject: Subject) -> None:
    assert wrong(check(delivered(subject, *arguments)))[rule] == "fail"


def damaged(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes(400) + data[middle + 400 :]


@pytest.mark.parametrize(
    "spoil",
    [lambda data: b"", lambda data: b"no video", lambda data: data[: len(data) // 2], damaged],
    ids=["empty", "text", "cut", "damaged"],
)
def test_bad_media_is_a_verdict_not_a_crash(spoil: Any, subject: Subject) -> None:
    subject.video.write_bytes(spoil(subject.video.read_bytes()))
    verdict = check(subject)
    assert verdict["status"] == "fail"
    assert wrong(verdict)["readable"] == "fail"


def test_a_missing_file_is_a_verdict_too(subject: Subject) -> None:
    assert wrong(check(replace(subject, video=Path("absent.mp4"))))["video"] == "fail"
    assert wrong(check(replace(subject, adapter=Path("absent.json"))))["adapter"] == "fail"
    assert wrong(check(replace(subject, adapter=None)))["adapter"] == "fail"


@pytest.mark.parametrize("content", ["", "[]", '{"events": [{"start": -1, "end": 2}]}', "\x00"])
def test_a_bad_adapter_fails(content: str, subject: Subject) -> None:
    subject.adapter.write_text(content)
    assert wrong(check(subject))["adapter"] == "fail"


def test_a_hesitation_sample_needs_both_questions_in_order(subject: Subject) -> None:
    for events in (
        [],
        [{"start": 0.2, "end": 0.6, "role": "first_question"}],
        [{"start": 1.0, "end": 1.5}, {"start": 0.2, "end": 0.6}],
    ):
        subject.adapter.write_text(json.dumps({"events": events}))
        assert wrong(check(subject)) == {"events": "fail"}


def test_other_tasks_need_neither_events_nor_silence(subject: Subject) -> None:
    pcm = np.append(np.full(32_000, 4000, np.int16), np.zeros(48_000, np.int16))
    other = replace(with_sound(subject, pcm), task="counting")
    assert wrong(check(other)) == {}
    assert wrong(check(replace(other, adapter=None))) == {}


def test_a_video_of_another_run_than_its_adapter_fails(subject: Subject) -> None:
    other = replace(delivered(subject, "-c", "copy"), adapter=subject.adapter)
    assert wrong(check(other)) == {"record": "fail"}


def test_an_old_video_on_the_deny_list_fails(subject: Subject, tmp_path: Path) -> None:
    listed = tmp_path / "old.txt"
    listed.write_text(f"# old hesitation\n\n{sha256_file(subject.video).upper()}  v.mp4\n")
    assert wrong(check(subject, denied=read_deny_list(listed))) == {"deny_list": "fail"}
    listed.write_text("not a hash\n")
    with pytest.raises(HfdError, match=r"old.txt:1"):
        read_deny_list(listed)


def with_hole(subject: Subject, samples: int, name: str, at_s: float = 1.2) -> Subject:
    """The sample with its sound from `at_s` on moved by some samples; its packets are kept."""
    video = subject.video.with_name(name)
    with (
        av.open(str(subject.video)) as source,
        av.open(str(video), "w", options={"strict": "experimental"}) as target,
    ):
        streams = {s.index: target.add_stream_from_template(s) for s in source.streams}
        packets = [packet for packet in source.demux() if packet.size]
        packets.sort(key=lambda packet: packet.dts * packet.time_base)
        for packet in packets:
            if packet.stream.type == "audio" and packet.pts * packet.time_base >= at_s:
                packet.pts += samples
                packet.dts += samples
            packet.stream = streams[packet.stream.index]
            target.mux(packet)
    return replace(subject, video=video, adapter=foreign_adapter(subject))


def streamed(subject: Subject) -> np.ndarray | None:
    """The sound that a model is sent, or None if the file cannot be streamed."""
    try:
        units = list(read_units(subject.video, 1280))
    except HfdError:
        return None
    return to_int16(np.concatenate([unit.pcm[: unit.valid_samples] for unit in units]))


@pytest.mark.parametrize("container", ["mp4", "mkv"])
@pytest.mark.parametrize("samples", [16, 640, 800, -640, 960, -960, 8000])
def test_a_hole_in_the_sound_is_placed_or_refused_as_the_reader_does(
    samples: int, container: str, subject: Subject
) -> None:
    whole = decoded_pcm(subject.video)
    holed = with_hole(subject, samples, f"hole.{container}")
    verdict, sent = check(holed), streamed(holed)
    assert (sent is None) == (abs(samples) > 800) == (verdict["status"] == "fail"), verdict
    if sent is None:
        assert "sound jumps from 1.2" in message(verdict, "readable")
        return
    assert verdict["pcm_sha256"] == sha256_bytes(sent.tobytes())
    moved = samples if abs(samples) > 32 else 0
    assert wrong(verdict).get("sound_times") == ("suspect" if moved else None)
    last = sent[22_000 + moved : 24_000 + moved]  # the end of the second question
    assert np.array_equal(last, whole[22_000:24_000]), "what follows lies at its time"


def test_frames_that_cannot_be_decoded_are_missed_by_the_check_too(subject: Subject) -> None:
    """An edit list that hides the first second: packets are there, frames are not."""
    cut = delivered(subject, name="cut.mp4")
    video = cut.video.with_name("hidden.mp4")
    run_ffmpeg("-ss", "0.6", "-i", cut.video, "-c", "copy", "-strict", "-2", video)
    hidden = replace(cut, video=video)
    assert streamed(hidden) is None
    assert check(hidden)["status"] == "fail"


@pytest.mark.parametrize(
    "line",
    [
        "{hash}  v.mp4",
        "{hash} *v.mp4",
        "{HASH}",
        "\\{hash}  a\\\\b\\n.mp4",
        "SHA256 (v #1.mp4) = {hash}",
        "\\SHA256 (a\\\\b.mp4) = {hash}",
        "{hash}  # old",
    ],
)
def test_every_form_of_sha256sum_is_read(line: str, tmp_path: Path) -> None:
    digest = sha256_bytes(b"old")
    listed = tmp_path / "old.txt"
    listed.write_text(line.format(hash=digest, HASH=digest.upper()) + "\n")
    assert read_deny_list(listed) == {digest}


def test_sha256sum_itself_is_read(tmp_path: Path) -> None:
    """Names that it escapes, and one in another encoding."""
    names = [b"a\\b.mp4", b"a\nb.mp4", b"v.mp4", b"caf\xe9.mp4"]
    for name in names:
        (tmp_path / os.fsdecode(name)).write_bytes(name)
    for options in ([], ["--tag"], ["--binary"]):
        command = ["sha256sum", *options, *map(os.fsdecode, names)]
        said = subprocess.run(command, cwd=tmp_path, capture_output=True, check=True).stdout
        (tmp_path / "old.txt").write_bytes(said)
        assert read_deny_list(tmp_path / "old.txt") == set(map(sha256_bytes, names))
