"""One result folder: honest runs are clean, and every damage is named by file and line."""

import gzip
import json
import shutil
import time

import numpy as np
import pytest

from hfd.judge.folder import read_folder
from hfd.judge.trace import read_trace
from hfd.stream.trace import TraceWriter
from tests.judge.forge import Forgery, write_rows
from tests.judge.world import Mute, Talker, run_model


def test_honest_runs_have_no_finding(world, honest):
    for sample in world.samples:
        folder = read_folder(honest / sample.sample_id)
        assert folder.findings == []
        assert folder.whole and np.array_equal(folder.track, folder.wav.pcm)
    assert any(read_folder(path).trace.of("audio") for path in honest.iterdir())


@pytest.mark.parametrize(
    ("model", "settings"),
    [
        (Mute, {}),
        (Talker, {"unit": 16000}),
        (Talker, {"unit": 7680}),
        (Talker, {"silence_s": 0.3, "voice": "beckett"}),
    ],
)
def test_other_units_clocks_and_silent_models_are_clean_too(
    world, tmp_path, model, settings, request
):
    name = f"other{abs(hash(request.node.name))}"
    ids = [world.samples[4].sample_id, world.samples[7].sample_id]
    results = run_model(world, name, model, ids, **settings)
    for sample_id in ids:
        assert read_folder(results / sample_id).findings == []


def test_a_disk_that_stalls_makes_no_honest_run_suspect(world, monkeypatch):
    stalls, write = [0.9], TraceWriter.write

    def stalling(self, kind, *moment, **fields):
        write(self, kind, *moment, **fields)
        if kind == "text" and stalls:
            time.sleep(stalls.pop())

    monkeypatch.setattr(TraceWriter, "write", stalling)
    sample_id = world.samples[6].sample_id
    results = run_model(world, "stalled", ids=[sample_id])
    assert not stalls and read_folder(results / sample_id).findings == []


@pytest.mark.realtime
def test_a_run_in_real_time_is_clean_too(world):
    sample_id = world.samples[7].sample_id
    results = run_model(world, "real_time", ids=[sample_id], clock="arrival")
    assert read_folder(results / sample_id).findings == []
    forgery = Forgery(results / sample_id)
    for line in forgery.lines[forgery.lines.index(forgery.of("text", "audio")[0]) :]:
        line["t"] = round(line["t"] + 0.3, 6)  # the machine's clock is left as it was
    forgery.queue()
    forgery.seal_as_it_is()
    [finding] = read_folder(results / sample_id).findings
    assert finding.rule == "A4" and "+0.300" in finding.message.replace("-", "+")


@pytest.mark.parametrize("name", ["assistant_audio.wav", "trace.jsonl.gz", "result.json"])
def test_every_flipped_byte_is_found_and_named(folder, name):
    data = (folder / name).read_bytes()
    places = np.linspace(0, len(data) - 1, 30).astype(int)
    for place in places:
        changed = bytearray(data)
        changed[place] ^= 0x10
        (folder / name).write_bytes(changed)
        findings = read_folder(folder).findings
        assert any(finding.file == name for finding in findings), f"byte {place} of {len(data)}"
    (folder / name).write_bytes(data)


def test_the_same_lines_in_other_compressed_bytes_are_found_and_named(folder):
    """Some flipped bits unpack to the very same lines, for example a distance to an equal word."""
    path = folder / "trace.jsonl.gz"
    data = path.read_bytes()
    other = gzip.compress(gzip.decompress(data), 6, mtime=0)
    path.write_bytes(data[:10] + other[10:])
    [finding] = read_folder(folder).findings
    assert (finding.rule, finding.file) == ("A16", "trace.jsonl.gz")


def test_a_byte_flipped_anywhere_in_a_trace_breaks_its_lines_or_its_hash(folder):
    path = folder / "trace.jsonl.gz"
    rows = gzip.decompress(path.read_bytes()).decode().splitlines()
    write_rows(folder, rows[:3])
    data = path.read_bytes()
    stated = read_trace(path).sha256
    for place in range(len(data)):
        changed = bytearray(data)
        changed[place] ^= 0x10
        path.write_bytes(changed)
        trace = read_trace(path)
        assert trace.findings or trace.sha256 != stated, place


def test_the_first_wrong_line_of_a_changed_trace_is_named(folder):
    path = folder / "trace.jsonl.gz"
    lines = gzip.decompress(path.read_bytes()).split(b"\n")
    lines[11] = lines[11].replace(b'"t":', b'"t":1', 1)
    write_rows(folder, b"\n".join(lines).decode().splitlines())
    finding = next(f for f in read_folder(folder).findings if "chain" in f.message)
    assert (finding.file, finding.line) == ("trace.jsonl.gz", 12)


def test_a_changed_value_in_the_result_is_named_by_its_line(folder):
    path = folder / "result.json"
    text = path.read_text(encoding="utf-8")
    value = json.loads(text)
    t = value["text_events"][1]["t"]
    path.write_text(text.replace(str(t), str(round(t + 0.5, 6)), 1), encoding="utf-8")
    line = next(
        n for n, row in enumerate(path.read_text().splitlines(), 1) if str(round(t + 0.5, 6)) in row
    )
    finding = read_folder(folder).findings[0]
    assert (finding.rule, finding.file, finding.line) == ("A16", "result.json", line)


def test_the_first_wrong_sample_of_a_changed_wav_is_named(folder):
    wav = folder / "assistant_audio.wav"
    data = bytearray(wav.read_bytes())
    at = read_folder(folder).chunks[0].start + 500
    data[44 + 2 * at] ^= 0x40
    wav.write_bytes(data)
    finding = next(f for f in read_folder(folder).findings if f.rule == "A10")
    assert f"sample {at} " in finding.message and "line" in finding.message


@pytest.mark.parametrize(
    "name", ["assistant_audio.wav", "trace.jsonl.gz", "result.json", "provenance.json"]
)
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    assert any(
        f.file == name and "cannot be read" in f.message for f in read_folder(folder).findings
    )


def test_results_under_another_sample_s_name_are_found(folder):
    other = folder.with_name("s99")
    shutil.move(folder, other)
    assert any("in the folder of 's99'" in f.message for f in read_folder(other).findings)
