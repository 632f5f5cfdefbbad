"""Find, check and load a ROMA snapshot: all that is wrong is said at once, before loading."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import safe_open
from transformers import (
    AutoConfig,
    AutoTokenizer,
    Qwen2_5OmniForConditionalGeneration,
    WhisperFeatureExtractor,
)

from hfd.errors import HfdError
from hfd.files import read_json, sha256_bytes, sha256_file
from hfd.models.roma import speak_head
from hfd.models.roma.settings import Settings
from hfd.models.weights import BLOCK_BYTES, BLOCKS, sampled_file

TRANSFORMERS = "5.17"
"""Release whose module layout the runner uses (requirements/roma.txt pins it)."""
FILES = ("config.json", "tokenizer_config.json", "preprocessor_config.json", "spk_dict.pt")
FLOATS = ("F32", "BF16", "F16")
"""Tensor types of a checkpoint that is not quantised, as safetensors names them."""
CONFIG_FIELDS = (
    "thinker_config.text_config",
    "thinker_config.vision_config",
    "thinker_config.audio_config",
    "thinker_config.vision_start_token_id",
    "thinker_config.audio_start_token_id",
    "thinker_config.video_token_index",
    "thinker_config.audio_token_index",
    "talker_config",
    "talker_config.tts_codec_start_token_id",
    "talker_config.tts_codec_end_token_id",
    "talker_config.tts_codec_pad_token_id",
    "talker_config.tts_codec_mask_token_id",
    "talker_config.tts_text_end_token_id",
    "talker_config.tts_text_pad_token_id",
    "token2wav_config.dit_config",
    "token2wav_config.bigvgan_config",
)


@dataclass(frozen=True)
class Speaker:
    """One voice of ``spk_dict.pt``.

    Attributes:
        bos_token: id in the thinker's vocabulary that opens the talker's turn.
        condition: float32 [1, speaker embedding].
        reference_mel: float32 [1, frames, 80].
    """

    bos_token: int
    condition: torch.Tensor
    reference_mel: torch.Tensor


@dataclass(frozen=True)
class Parts:
    """A loaded snapshot.

    Attributes:
        model: upstream's model, in eval mode, on `device`.
        tokenizer, mel: upstream's tokenizer and log-mel extractor.
        head: the speak head.
        speaker: the voice.
        device: where the model is.
        weights: hash of the weights, see `weights_hash`.
        dtypes: how many parameters of each type.
        facts: what else provenance says of the weights (JSON values).
    """

    model: Qwen2_5OmniForConditionalGeneration
    tokenizer: Any
    mel: Any
    head: speak_head.SpeakHead
    speaker: Speaker
    device: torch.device
    weights: str
    dtypes: Mapping[str, int]
    facts: Mapping[str, Any]


def load_snapshot(settings: Settings) -> Parts:
    """Check the snapshot, then load it onto one device.

    Raises:
        HfdError: everything that is wrong with the snapshot, its config, or the device, at once.
    """
    device = pick_device(settings.device)
    folder = find_snapshot(settings.model_path, settings.revision)
    problems = [*_package_problems(), *snapshot_problems(folder, settings.speak_head)]
    problems += speaker_problems(folder, settings.speaker)
    problems += memory_problems(device, settings.min_free_gpu_gb)
    if problems:
        raise HfdError(
            "cannot be run:\n  " + "\n  ".join(problems),
            file=settings.model_path,
            field="settings.model_path",
            remedy="See docs/roma.md, Weights",
        )
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    dtype = pick_dtype(settings.dtype, device)
    model = Qwen2_5OmniForConditionalGeneration.from_pretrained(
        folder, dtype=dtype, attn_implementation="sdpa", local_files_only=True
    )
    model = model.eval().requires_grad_(False).to(device)
    model.token2wav.float()
    keys = speak_head.head_keys(settings.speak_head)
    head = speak_head.SpeakHead.from_tensors(
        settings.speak_head, _read_tensors(folder, keys), _gate_layers(model.config), str(device)
    )
    weights, basis = weights_hash(folder)
    return Parts(
        model=model,
        tokenizer=AutoTokenizer.from_pretrained(folder, local_files_only=True),
        mel=WhisperFeatureExtractor.from_pretrained(folder, local_files_only=True),
        head=head,
        speaker=pick_speaker(model.speaker_map, settings.speaker, device),
        device=device,
        weights=weights,
        dtypes=dtype_counts(model),
        facts={"weights_basis": basis, "revision": settings.revision},
    )


def pick_device(name: str) -> torch.device:
    """The device of that name; ``auto`` is the first GPU, else the CPU."""
    if name == "auto":
        name = "cuda:0" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise HfdError(
            f"is {name!r}, but torch {torch.__version__} sees no GPU",
            field="settings.device",
            remedy="Run on a GPU node, or install a CUDA build of torch (docs/roma.md)",
        )
    return torch.device(name)


def pick_dtype(name: str, device: torch.device) -> torch.dtype:
    """Number type of thinker and talker."""
    if name == "auto":
        name = "bfloat16" if device.type == "cuda" else "float32"
    return getattr(torch, name)


def find_snapshot(model_path: str, revision: str | None) -> Path:
    """The snapshot's folder: a local path, or a hub id fetched at its pinned revision."""
    folder = Path(model_path).expanduser()
    if folder.is_dir():
        if revision is not None:
            raise HfdError(
                "is set, but model_path is a folder, whose revision nobody can check",
                field="settings.revision",
                remedy="Remove revision, or give the hub id",
            )
        return folder
    if folder.is_absolute() or model_path.count("/") != 1:
        raise HfdError(
            f"is {model_path!r}, which is no folder",
            field="settings.model_path",
            remedy="Give a snapshot folder or a hub id such as EurekaTian/ROMA",
        )
    if revision is None:
        raise HfdError(
            f"is missing for the hub id {model_path!r}",
            field="settings.revision",
            remedy="Pin the 40-digit commit of the snapshot",
        )
    from huggingface_hub import snapshot_download

    try:
        return Path(snapshot_download(model_path, revision=revision))
    except Exception as error:
        raise HfdError(
            f"{model_path!r} at {revision} cannot be fetched ({error})",
            field="settings.model_path",
            remedy="Download it once with `hf download` where there is a network",
        ) from error


def _package_problems() -> list[str]:
    found = transformers.__version__
    if found.split(".")[:2] == TRANSFORMERS.split("."):
        return []
    return [f"transformers is {found}; the runner is made for {TRANSFORMERS} (envs/roma.yaml)"]


def memory_problems(device: torch.device, need_gb: float) -> list[str]:
    """Say so if the GPU has less free memory than a run needs; the CPU is never refused."""
    if device.type != "cuda":
        return []
    free, total = torch.cuda.mem_get_info(device)
    if free >= need_gb * 1e9:
        return []
    return [
        f"the GPU has {free / 1e9:.1f} of {total / 1e9:.1f} GB free, {need_gb:g} GB are needed"
        " (nothing is quantised, offloaded or cropped to make it fit)"
    ]


def snapshot_problems(folder: Path, head: str) -> list[str]:
    """Everything that is wrong with a snapshot's files, one sentence each."""
    problems = [f"file {name} is missing" for name in FILES if not (folder / name).is_file()]
    if not any((folder / name).is_file() for name in ("tokenizer.json", "vocab.json")):
        problems.append("file tokenizer.json is missing (or vocab.json and merges.txt)")
    shards, missing = _shards(folder)
    problems += [f"file {name} is missing" for name in missing]
    if (folder / "config.json").is_file():
        config = read_json(folder / "config.json")
        found = config_problems(config)
        problems += found
        if not missing and not found:
            problems += _tensor_problems(folder, shards, head)
    return problems


def speaker_problems(folder: Path, name: str) -> list[str]:
    """Say so if ``spk_dict.pt`` cannot be read or lacks the voice; nothing if it is missing."""
    path = folder / "spk_dict.pt"
    if not path.is_file():
        return []
    try:
        speakers = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        return [f"spk_dict.pt cannot be read ({type(error).__name__})"]
    if name in speakers:
        return []
    return [f"settings.speaker is {name!r}; spk_dict.pt has {', '.join(sorted(speakers))}"]


def config_problems(config: Mapping[str, Any]) -> list[str]:
    """Missing fields, and settings that would quantise the model or crop its context."""
    problems = []
    for name in CONFIG_FIELDS:
        value: Any = config
        for part in name.split("."):
            value = value.get(part) if isinstance(value, Mapping) else None
        if value is None:
            problems.append(f"config.json lacks {name}")
    if not config.get("enable_audio_output", True):
        problems.append("config.json: enable_audio_output is false, so there is no native talker")
    for where in (config, config.get("thinker_config", {}), config.get("talker_config", {})):
        if where.get("quantization_config"):
            problems.append(
                "config.json: quantization_config is set; quantised weights are refused"
            )
    text = config.get("thinker_config", {}).get("text_config", {})
    for name, part in (("text_config", text), ("talker_config", config.get("talker_config", {}))):
        if part.get("use_sliding_window"):
            problems.append(f"config.json: {name}.use_sliding_window crops the context")
    return problems


def _shards(folder: Path) -> tuple[list[str], list[str]]:
    """Names of the weight files, and of those that are missing."""
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        names = sorted(set(read_json(index)["weight_map"].values()))
    else:
        names = ["model.safetensors"]
    return names, [name for name in names if not (folder / name).is_file()]


def _tensor_problems(folder: Path, shards: Iterable[str], head: str) -> list[str]:
    """Compare names, shapes and types of all tensors with the model the config describes."""
    found: dict[str, list[int]] = {}
    types: Counter[str] = Counter()
    for shard in shards:
        with safe_open(folder / shard, "pt") as tensors:
            for key in tensors.keys():  # noqa: SIM118 (safe_open is no mapping)
                part = tensors.get_slice(key)
                found[key] = list(part.get_shape())
                types[part.get_dtype()] += 1
    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    with torch.device("meta"):
        model = Qwen2_5OmniForConditionalGeneration(config)
    wanted = {key: list(value.shape) for key, value in model.state_dict().items()}
    problems = [f"tensor {key} is missing" for key in sorted(wanted.keys() - found.keys())]
    problems += [
        f"tensor {key} has shape {found[key]}, the config wants {wanted[key]}"
        for key in sorted(wanted.keys() & found.keys())
        if found[key] != wanted[key]
    ]
    problems += [
        f"tensor {key} (speak head {head!r}) is missing"
        for key in speak_head.head_keys(head)
        if key not in found
    ]
    mixed, layers = found.get(speak_head.MIXER), _gate_layers(config)
    if mixed is not None and mixed != [len(layers)]:
        problems.append(f"the speak head mixes {mixed} layers, the config names {list(layers)}")
    problems += [
        f"{count} tensors are of type {kind}; quantised weights are refused"
        for kind, count in sorted(types.items())
        if kind not in FLOATS
    ]
    return problems


def _gate_layers(config: Any) -> tuple[int, ...]:
    """Layers the speak head mixes, from wherever the config keeps them."""
    for where in (config, config.thinker_config, config.thinker_config.text_config):
        if getattr(where, "gate_layer_ids", None):
            return tuple(where.gate_layer_ids)
    return speak_head.LAYERS


def _read_tensors(folder: Path, keys: Iterable[str]) -> dict[str, torch.Tensor]:
    """Read single tensors out of the shards."""
    wanted, tensors = set(keys), {}
    for shard in _shards(folder)[0]:
        with safe_open(folder / shard, "pt") as opened:
            for key in wanted & set(opened.keys()):
                tensors[key] = opened.get_tensor(key)
    return tensors


def weights_hash(folder: Path) -> tuple[str, str]:
    """Hash that changes with the weights, and what it covers.

    The bytes of a 20 GB snapshot are not read a second time: a sample of each shard
    (`sampled_file`) is hashed, small files are hashed whole.
    """
    parts: dict[str, Any] = {}
    for name in [*FILES, "model.safetensors.index.json"]:
        if (folder / name).is_file():
            parts[name] = sha256_file(folder / name)
    for name in _shards(folder)[0]:
        parts[name] = sampled_file(folder / name)
    basis = f"index, config, spk_dict.pt; per shard size, header, {BLOCKS} x {BLOCK_BYTES} bytes"
    return sha256_bytes(json.dumps(parts, sort_keys=True).encode()), basis


def pick_speaker(speakers: Mapping[str, Any], name: str, device: torch.device) -> Speaker:
    """The voice of that name, which `speaker_problems` has found to be there."""
    voice = speakers[name]
    return Speaker(
        int(voice["bos_token"]),
        voice["cond"].to(device, torch.float32).reshape(1, -1),
        voice["ref_mel"].to(device, torch.float32).reshape(1, -1, voice["ref_mel"].shape[-1]),
    )


def dtype_counts(model: torch.nn.Module) -> dict[str, int]:
    """Number of parameters of each type, for provenance."""
    counts: Counter[str] = Counter()
    for parameter in model.parameters():
        counts[str(parameter.dtype).removeprefix("torch.")] += parameter.numel()
    return dict(counts)
