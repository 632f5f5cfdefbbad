"""A snapshot is checked as a whole, before its code runs: everything wrong is said at once."""

import json
import shutil

import numpy as np
import pytest
import soundfile

from hfd.errors import HfdError
from hfd.models.minicpmo import checkpoint
from hfd.models.minicpmo.checkpoint import VOCODER, VOICE, find_snapshot, snapshot_problems
from hfd.models.registry import create_model
from tests.tiny.minicpmo import write_files, write_voice


def write_shard(path, tensors):
    """A safetensors file of zeros, {name: (type, shape)}."""
    sizes = {"F32": 4, "BF16": 2, "I8": 1}
    header, end = {}, 0
    for name, (kind, shape) in tensors.items():
        size = int(np.prod(shape)) * sizes[kind]
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(end))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("minicpmo") / "快照 [1]"
    write_files(folder, None)
    write_shard(folder / "model.safetensors", {"llm.a": ("BF16", [4, 4]), "b": ("F32", [2])})
    return folder


@pytest.fixture
def folder(whole, tmp_path):
    return shutil.copytree(whole, tmp_path / "快照 [1]")


def problems(folder, voice=None):
    return "\n".join(snapshot_problems(find_snapshot(str(folder), voice)))


def edit_config(folder, change):
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


def test_a_whole_snapshot_has_no_problem(folder):
    assert problems(folder) == ""


def test_everything_that_is_missing_is_named_at_once(folder):
    (folder / "utils.py").unlink()
    (folder / "model.safetensors").unlink()
    (folder / "merges.txt").unlink()
    (folder / VOCODER / "campplus.onnx").unlink()
    (folder / VOICE).unlink()
    told = problems(folder)
    for name in (
        "utils.py",
        "model.safetensors",
        "merges.txt",
        "campplus.onnx",
        "HT_ref_audio.wav",
    ):
        assert name in told


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda c: c.update(version="2.6"), "'2.6'; this runner is for 'minicpmo' '4.5'"),
        (lambda c: c.update(model_type="qwen3"), "'qwen3'"),
        (lambda c: c.update(quantization_config={"bits": 4}), "quantised weights are refused"),
        (lambda c: c["tts_config"].update(quantization_config={"bits": 4}), "tts_config"),
        (lambda c: c.update(use_sliding_window=True), "crops the context"),
    ],
)
def test_another_model_quantisation_and_cropping_are_refused(folder, change, words):
    edit_config(folder, change)
    assert words in problems(folder)


def test_a_shard_cut_short_a_lacking_tensor_and_a_quantised_one_are_named(folder):
    index = {"llm.a": "one.safetensors", "llm.lost": "one.safetensors", "b": "two.safetensors"}
    (folder / checkpoint.INDEX).write_text(json.dumps({"weight_map": index}))
    write_shard(folder / "one.safetensors", {"llm.a": ("I8", [4])})
    write_shard(folder / "two.safetensors", {"b": ("F32", [100])})
    with (folder / "two.safetensors").open("r+b") as stream:
        stream.truncate(150)
    told = problems(folder)
    assert "one.safetensors lacks 1 tensors of the index, e.g. llm.lost" in told
    assert "two.safetensors has 150 bytes" in told
    assert "1 tensors are of type I8" in told
    (folder / "one.safetensors").write_bytes(b"<html>not found</html>")
    assert "one.safetensors is no safetensors file" in problems(folder)
    (folder / checkpoint.INDEX).write_text("{}")
    assert "model.safetensors.index.json cannot be read" in problems(folder)


def test_a_vocoder_file_that_would_call_other_classes_is_refused(folder):
    flow = folder / VOCODER / "flow.yaml"
    flow.write_text("flow: !new:cosyvoice2.flow.flow.CausalMaskedDiffWithXvec\n  a: 1\n")
    assert problems(folder) == ""
    flow.write_text("flow: !new:cosyvoice2.flow.flow.X\nevil: !apply:os.system ['true']\n")
    assert "would call !apply:os.system" in problems(folder)


def test_a_length_penalty_is_refused_before_loading_where_the_code_takes_none(folder):
    path = folder / "modeling_minicpmo.py"
    path.write_text("class A:\n    def streaming_generate(self, top_k=1): ...\n")
    assert "write null" in checkpoint.penalty_problems(folder, 0.8)[0]
    assert checkpoint.penalty_problems(folder, None) == []
    path.write_text("class A:\n    def streaming_generate(self, length_penalty=1.0): ...\n")
    assert checkpoint.penalty_problems(folder, 0.8) == []
    path.write_text("no python")
    assert "is no Python" in checkpoint.penalty_problems(folder, 0.8)[0]


@pytest.mark.parametrize(
    "seconds, words", [(17.2, "17.2 s long; the vocoder takes 16.9 s"), (0.4, "0.4 s long")]
)
def test_a_voice_of_wrong_length_is_refused(folder, tmp_path, seconds, words):
    write_voice(tmp_path / "声音.wav", seconds)
    assert words in problems(folder, str(tmp_path / "声音.wav"))


def test_a_voice_that_is_silent_or_no_wav_is_refused(folder, tmp_path):
    soundfile.write(tmp_path / "silent.wav", np.zeros(32_000), 16_000)
    (tmp_path / "text.wav").write_text("no sound")
    assert "silent" in problems(folder, str(tmp_path / "silent.wav"))
    assert "cannot be read" in problems(folder, str(tmp_path / "text.wav"))


@pytest.mark.parametrize("inner", ["Realtime-Venus-Omni", "model_weight/model_weight"])
def test_both_nestings_of_venus_are_found(folder, tmp_path, inner):
    outer = tmp_path / "download"
    (outer / inner).parent.mkdir(parents=True)
    shutil.copytree(folder, outer / inner)
    assert find_snapshot(str(outer), None).folder == (outer / inner).resolve()


def test_a_hub_id_and_an_empty_folder_are_refused_with_the_places_looked_at(tmp_path):
    with pytest.raises(HfdError, match=r"openbmb/MiniCPM-o-4_5.*no folder.*runs the snapshot"):
        find_snapshot("openbmb/MiniCPM-o-4_5", None)
    with pytest.raises(HfdError, match=r"no config\.json.*Realtime-Venus-Omni.*model_weight"):
        find_snapshot(str(tmp_path), None)


def test_code_weights_and_vocoder_are_part_of_what_ran(folder):
    snapshot = find_snapshot(str(folder), None)
    weights, code = checkpoint.weights_hash(snapshot), checkpoint.code_hashes(folder)
    (folder / VOCODER / "hift.pt").write_bytes(b"other")
    assert checkpoint.weights_hash(snapshot) != weights
    (folder / "modeling_minicpmo.py").write_text("# another\n")
    changed = checkpoint.code_hashes(folder)
    assert [name for name in code if code[name] != changed[name]] == ["modeling_minicpmo.py"]


@pytest.mark.parametrize(
    "settings, words",
    [
        ({"model_path": "x", "window": "basic"}, "drops old seconds"),
        ({"model_path": "x", "window": "context"}, "settings.window"),
        ({"model_path": "x", "colour": 1}, "settings.colour"),
        ({"model_path": "x", "num_steps": 20}, "settings.num_steps"),
        ({"model_path": "x", "frames": "all"}, "settings.frames"),
        ({"model_path": ""}, "settings.model_path"),
        ({}, "settings.model_path"),
    ],
)
def test_wrong_settings_are_refused_by_name(settings, words):
    with pytest.raises(HfdError, match=words):
        create_model("minicpmo", settings)
