"""Loading: a snapshot is checked as a whole, and everything wrong is said at once."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import Qwen2_5OmniConfig

from hfd.errors import HfdError
from hfd.models.packages import Packages, compare_packages
from hfd.models.roma import checkpoint
from hfd.models.roma import snapshot as snapshots
from hfd.models.roma.capacity import memory_need
from hfd.models.roma.prompt import STREAMING_MIX, TextStream, make_turns
from hfd.models.roma.settings import parse_settings

pytestmark = pytest.mark.heavy


@pytest.fixture
def copy(snapshot, tmp_path):
    return shutil.copytree(snapshot, tmp_path / "快照 [1]")


def load(folder, **settings):
    return checkpoint.load_snapshot(
        parse_settings({"model_path": str(folder), "device": "cpu", **settings})
    )


def edit_config(folder, change):
    config = json.loads((folder / "config.json").read_text())
    change(config)
    (folder / "config.json").write_text(json.dumps(config))


def edit_tensors(folder, change):
    tensors = load_file(folder / "model.safetensors")
    change(tensors)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})


def test_missing_files_and_fields_are_named_at_once(copy):
    (copy / "spk_dict.pt").unlink()
    (copy / "preprocessor_config.json").unlink()
    edit_config(copy, lambda c: c["thinker_config"].pop("vision_start_token_id"))
    with pytest.raises(HfdError) as error:
        load(copy)
    for name in ("spk_dict.pt", "preprocessor_config.json", "vision_start_token_id"):
        assert name in str(error.value)


def test_an_unknown_voice_and_a_broken_voice_file_are_told_with_all_else(copy):
    (copy / "preprocessor_config.json").unlink()
    with pytest.raises(HfdError, match=r"(?s)preprocessor.*Nobody.*Chelsie, Ethan"):
        load(copy, speaker="Nobody")
    (copy / "spk_dict.pt").write_bytes(b"no archive")
    with pytest.raises(HfdError, match=r"(?s)preprocessor.*spk_dict.pt: cannot be read"):
        load(copy)


def test_missing_and_misshapen_tensors_are_all_named(copy):
    def change(tensors):
        del tensors["talker.codec_head.weight"]
        del tensors["thinker.gate_mixer.logits"]
        del tensors["thinker.gate_head_pro_fc2.bias"]
        tensors["thinker.lm_head.weight"] = torch.zeros(3, 3)

    edit_tensors(copy, change)
    with pytest.raises(HfdError) as error:
        load(copy)
    for name in ("codec_head", "gate_mixer", "gate_head_pro_fc2", "thinker.lm_head.weight"):
        assert name in str(error.value)


def test_a_missing_shard_is_named(copy):
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    (copy / "model.safetensors").rename(copy / "model-1.safetensors")
    (copy / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(HfdError, match=r"model-2\.safetensors: is missing"):
        load(copy)


def test_a_sharded_snapshot_loads_the_same_weights(copy, parts):
    tensors = load_file(copy / "model.safetensors")
    names = sorted(tensors)
    shards = {"one.safetensors": names[::2], "two.safetensors": names[1::2]}
    for shard, keys in shards.items():
        save_file({key: tensors[key] for key in keys}, copy / shard, {"format": "pt"})
    weight_map = {key: shard for shard, keys in shards.items() for key in keys}
    (copy / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {}, "weight_map": weight_map})
    )
    (copy / "model.safetensors").unlink()
    sharded = load(copy)
    for one, other in zip(sharded.model.parameters(), parts.model.parameters(), strict=True):
        assert torch.equal(one, other)
    assert torch.equal(sharded.head.mix, parts.head.mix)


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda c: c.update(quantization_config={"bits": 4}), "quantis"),
        (lambda c: c["thinker_config"]["text_config"].update(use_sliding_window=True), "crops"),
        (lambda c: c.update(enable_audio_output=False), "no native talker"),
        (lambda c: c.update(gate_layer_ids=[-1, -2]), "speak head mixes"),
    ],
)
def test_a_config_that_changes_the_model_is_refused(copy, change, words):
    edit_config(copy, change)
    with pytest.raises(HfdError, match=words):
        load(copy)


def test_quantised_tensors_are_refused(copy):
    edit_tensors(copy, lambda t: t.update({"talker.extra": torch.zeros(4, dtype=torch.int8)}))
    with pytest.raises(HfdError, match="type I8"):
        load(copy)


def test_both_speak_heads_load_and_agree_with_their_formula(snapshot, parts):
    linear = load(snapshot, speak_head="linear").head
    states = torch.randn(4, 64, generator=torch.Generator().manual_seed(1))
    tensors = load_file(snapshot / "model.safetensors")
    mixed = torch.softmax(tensors["thinker.gate_mixer.logits"], 0) @ states
    score = mixed @ tensors["thinker.gate_head.weight"][0] + tensors["thinker.gate_head.bias"]
    assert linear.probability(states) == pytest.approx(torch.sigmoid(score).item(), abs=1e-6)
    assert parts.head.probability(states) != linear.probability(states)


def test_layer_ids_come_from_the_config(copy):
    edit_config(copy, lambda c: c["thinker_config"].update(gate_layer_ids=[-1, -3, 1, 0]))
    assert load(copy).head.layers == (-1, -3, 1, 0)


def test_the_weights_hash_changes_with_a_single_training_step(copy, snapshot):
    before, _ = checkpoint.weights_hash(snapshot)
    assert checkpoint.weights_hash(copy)[0] == before
    edit_tensors(copy, lambda t: t.update({k: v * 1.0001 for k, v in t.items()}))
    assert checkpoint.weights_hash(copy)[0] != before


def test_places_that_cannot_be_pinned_are_refused(snapshot):
    for place, revision, field in (
        (str(snapshot), "0" * 40, "settings.revision"),
        ("EurekaTian/ROMA", None, "settings.revision"),
        ("/nowhere/at all", None, "settings.model_path"),
    ):
        with pytest.raises(HfdError) as error:
            snapshots.find_snapshot(place, revision)
        assert error.value.field == field


@pytest.mark.parametrize("device, words", [("gpu", "no device"), ("cuda:x", "no device")])
def test_a_device_that_is_none_is_refused_with_all_else(copy, device, words):
    (copy / "spk_dict.pt").unlink()
    with pytest.raises(HfdError, match=rf"(?s)settings.device: .*{words}.*spk_dict.pt: is missing"):
        load(copy, device=device)


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("device", ["auto", "cuda:0"])
def test_without_a_gpu_only_a_setting_makes_it_run_on_the_cpu(snapshot, device):
    with pytest.raises(HfdError, match=rf"torch {re.escape(torch.__version__)} sees no GPU"):
        load(snapshot, device=device)


def write(name, content):
    return lambda folder: (folder / name).write_bytes(content)


def edit(name, change):
    def apply(folder):
        value = json.loads((folder / name).read_text())
        change(value)
        (folder / name).write_text(json.dumps(value))

    return apply


def drop(name):
    return lambda folder: (folder / name).unlink()


def cut(folder):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-1000])


def without_merges(folder):
    (folder / "tokenizer.json").unlink()
    (folder / "vocab.json").write_text("{}")


def without_a_token(value):
    """<|im_start|> is plain text, as in the tokenizer of another model."""
    value["added_tokens"] = [t for t in value["added_tokens"] if t["content"] != "<|im_start|>"]


def voice_without(part):
    def apply(folder):
        voices = torch.load(folder / "spk_dict.pt", weights_only=True)
        del voices["Chelsie"][part]
        torch.save(voices, folder / "spk_dict.pt")

    return apply


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 9\n"
DAMAGES = {
    "cut short": (cut, r"model.safetensors: is cut short: \d+ of \d+ bytes"),
    "pointer": (write("model.safetensors", POINTER), "model.safetensors: is a pointer of Git LFS"),
    "no weights": (write("model.safetensors", b"x" * 99), "model.safetensors: is cut short or no"),
    "merges": (without_merges, "merges.txt: is missing"),
    "broken mel": (
        write("preprocessor_config.json", b"{"),
        "preprocessor_config.json: is no valid",
    ),
    "mel size": (
        edit("preprocessor_config.json", lambda c: c.update(feature_size=80)),
        "preprocessor_config.json, feature_size: is 80, the model takes 128",
    ),
    "mark": (
        edit("config.json", lambda c: c["thinker_config"].pop("vision_end_token_id")),
        "config.json, thinker_config.vision_end_token_id: is missing",
    ),
    "other mark": (
        edit("config.json", lambda c: c["thinker_config"].update(audio_end_token_id=5)),
        "config.json, thinker_config.audio_end_token_id: is 5, the tokenizer's",
    ),
    "token": (
        edit("tokenizer.json", without_a_token),
        "tokenizer_config.json, .*im_start.* is 12 tokens and not one",
    ),
    "voice": (voice_without("bos_token"), "spk_dict.pt, Chelsie.bos_token: is missing"),
    "broken config": (write("config.json", b"[1]"), "config.json: holds no fields"),
    "index": (write("model.safetensors.index.json", b"{}"), "index.json, weight_map: is missing"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damage_is_named_with_file_field_and_remedy(copy, damage):
    apply, words = DAMAGES[damage]
    apply(copy)
    with pytest.raises(HfdError, match=words):
        load(copy)


def test_all_damages_are_told_at_once(copy):
    chosen = ("cut short", "mel size", "mark", "token", "voice")
    for name in chosen:
        DAMAGES[name][0](copy)
    with pytest.raises(HfdError) as error:
        load(copy, device="gpu")
    for name in chosen:
        assert re.search(DAMAGES[name][1], str(error.value)), name
    assert "settings.device" in str(error.value)


def test_a_mistyped_folder_is_no_hub_id(tmp_path, monkeypatch):
    (tmp_path / "weights" / "ROMA").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(HfdError, match=r"no folder .*weights has ROMA") as error:
        snapshots.find_snapshot("weights/ROMMA", None)
    assert error.value.field == "settings.model_path"
    assert snapshots.find_snapshot("weights/ROMA", None).is_dir()


WARNINGS = """
import sys; sys.path.insert(0, {path!r})
import logging
from hfd.models.roma import checkpoint
from hfd.models.roma.settings import parse_settings
checkpoint.load_snapshot(parse_settings({{"model_path": {snapshot!r}, "device": "cpu"}}))
with checkpoint.quiet_transformers():
    logging.getLogger("transformers.other").warning("a reason to look")
"""


def test_transformers_warns_of_nothing_that_does_not_hold(snapshot):
    """And goes on to warn of all else."""
    path = str(Path(checkpoint.__file__).parents[3])
    code = WARNINGS.format(path=path, snapshot=str(snapshot))
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stderr.split("\n") == ["[transformers] a reason to look", ""]


def test_packages_are_those_of_the_environment_file_or_it_is_said(tmp_path):
    file = tmp_path / "roma.yaml"
    pins = [f"torch=={torch.__version__.partition('+')[0]}", "pyyaml==0.1", "no-such-thing==1.0"]
    file.write_text(json.dumps({"dependencies": ["pip", {"pip": pins}]}))
    found = compare_packages(file)
    assert found.missing == ("no-such-thing==1.0",) and set(found.differing) == {"pyyaml"}
    assert "envs/roma.yaml, which is what was tested, has 0.1" in found.warnings()[0]
    problems = [str(p) for p in checkpoint.package_problems(found)]
    assert problems == [
        "envs/roma.yaml, no-such-thing==1.0: is not installed. Install it into this environment"
    ]
    assert checkpoint.package_problems(Packages("envs/roma.yaml", (), {})) == []


def test_provenance_counts_every_parameter(parts):
    total = sum(p.numel() for p in parts.model.parameters())
    assert parts.dtypes == {"float32": total}


def test_the_prompt_is_roma_s_to_the_last_blank(parts):
    turns = make_turns(parts.tokenizer, None)
    opening = parts.tokenizer.decode(turns.opening, skip_special_tokens=False)
    assert opening == (f"<|im_start|>system\n{STREAMING_MIX}<|im_end|>\n<|im_start|>user\n")
    assert STREAMING_MIX.endswith('"alert".\n    ') and STREAMING_MIX.count("\n    ") == 5
    cut = parts.tokenizer.decode(turns.close_cut, skip_special_tokens=False)
    assert cut == "<|endoftext|><|im_end|>\n<|im_start|>user\n"


def test_characters_leave_whole(parts):
    stream = TextStream(parts.tokenizer)
    deltas = [
        stream.add(token) for token in parts.tokenizer.encode("a好!", add_special_tokens=False)
    ]
    assert deltas == ["a", "", "", "好", "!"]
    broken = TextStream(parts.tokenizer)
    half = parts.tokenizer.encode("好", add_special_tokens=False)[0]
    assert broken.add(half) == "" and broken.end() == "\ufffd"


@pytest.mark.parametrize(
    ("media_s", "sessions", "reserved_gb"),
    [(60, 1, 30.8), (300, 1, 34.3), (600, 1, 38.1), (60, 4, 35.6), (60, 8, 45.4)],
)
def test_the_memory_asked_for_is_what_a_gpu_took(parts, media_s, sessions, reserved_gb):
    """Peaks of docs/performance.md, of weights of 22.5 GB: neither less nor much more is wanted."""
    settings = parse_settings({"model_path": "unused", "max_media_s": media_s})
    turns = make_turns(parts.tokenizer, None)
    need = memory_need(Qwen2_5OmniConfig(), settings, turns, 2, sessions) / 1e9
    assert reserved_gb <= 22.5 + need <= 1.2 * reserved_gb
