"""Find a ROMA snapshot and check it before anything is loaded, saying all that is wrong at once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from transformers import AutoConfig, AutoTokenizer, Qwen2_5OmniForConditionalGeneration

from hfd.errors import HfdError
from hfd.files import read_json
from hfd.models.roma import speak_head

FILES = ("config.json", "tokenizer_config.json", "preprocessor_config.json", "spk_dict.pt")
TOKENIZER_FILES = ("tokenizer.json", "vocab.json", "merges.txt")
FLOATS = ("F32", "BF16", "F16")
"""Tensor types of a checkpoint that is not quantised, as safetensors names them."""
CONFIG_FIELDS = (
    "thinker_config.text_config",
    "thinker_config.vision_config",
    "thinker_config.audio_config",
    "thinker_config.vision_start_token_id",
    "thinker_config.vision_end_token_id",
    "thinker_config.audio_start_token_id",
    "thinker_config.audio_end_token_id",
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
TURN_TOKENS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
UNIT_TOKENS = {
    "<|vision_bos|>": "vision_start_token_id",
    "<|vision_eos|>": "vision_end_token_id",
    "<|audio_bos|>": "audio_start_token_id",
    "<|audio_eos|>": "audio_end_token_id",
}
"""Special tokens and the field of the thinker's config that names each one's id."""
MEL = {"sampling_rate": 16_000, "hop_length": 160, "n_fft": 400}
"""What one second of sound has to become, from preprocessor_config.json."""
VOICE = ("bos_token", "cond", "ref_mel")
AGAIN = "Download the file again (`hf download`)"
RELEASED = "Take the file of the release"
Shapes = dict[str, tuple[list[int], str]]
"""Shape and type of every tensor by name."""


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong, with its remedy."""

    file: str
    field: str | None
    what: str
    remedy: str

    def __str__(self) -> str:
        place = f"{self.file}, {self.field}" if self.field else self.file
        return f"{place}: {self.what}. {self.remedy}"


def find_snapshot(model_path: str, revision: str | None) -> Path:
    """The snapshot's folder: a local path, or a hub id fetched at its pinned revision.

    Raises:
        HfdError: no such folder, a hub id without revision, or one that cannot be fetched.
    """
    folder = Path(model_path).expanduser()
    if folder.is_dir():
        if revision is not None:
            raise HfdError(
                "is set, but model_path is a folder, whose revision nobody can check",
                field="settings.revision",
                remedy="Remove revision, or give the hub id",
            )
        return folder
    local = folder.is_absolute() or model_path.startswith(("~", ".")) or folder.parent.is_dir()
    if local or model_path.count("/") != 1:
        here = sorted(path.name for path in folder.parent.glob("*/")) if local else []
        found = f"; {folder.parent} has {', '.join(here[:8])}" if here else ""
        raise HfdError(
            f"is {model_path!r}, which is no folder (looked for {folder.absolute()}){found}",
            field="settings.model_path",
            remedy="Give a snapshot folder or a hub id such as EurekaTian/ROMA",
        )
    if revision is None:
        raise HfdError(
            f"is missing: {model_path!r} is no folder here, and a hub id needs its revision",
            field="settings.revision",
            remedy="Pin the 40-digit commit of the snapshot, or mend settings.model_path",
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


def snapshot_problems(folder: Path, head: str, voice: str) -> list[Problem]:
    """Everything that is wrong with a snapshot.

    Args:
        folder: the snapshot.
        head: which speak head is used.
        voice: which voice of ``spk_dict.pt`` is used.
    """
    problems = [_missing(name) for name in FILES if not (folder / name).is_file()]
    config, found = _json_file(folder / "config.json")
    problems += found
    told = [] if config is None else config_problems(config)
    problems += told
    whole = config if not told else None
    problems += tokenizer_problems(folder, whole)
    problems += preprocessor_problems(folder, config)
    problems += voice_problems(folder, voice, whole)
    shapes, found = read_shapes(folder)
    problems += found
    if whole is not None and not found:
        problems += tensor_problems(folder, shapes, head)
    return problems


def _missing(name: str) -> Problem:
    return Problem(name, None, "is missing", AGAIN)


def _json_file(path: Path) -> tuple[Any, list[Problem]]:
    """The file's content; None if it is missing (told elsewhere) or broken."""
    if not path.is_file():
        return None, []
    try:
        value = read_json(path)
    except HfdError as error:
        return None, [Problem(path.name, None, error.problem, AGAIN)]
    if not isinstance(value, dict):
        return None, [Problem(path.name, None, "holds no fields", AGAIN)]
    return value, []


def _field(config: Mapping[str, Any], name: str) -> Any:
    """A field by its dotted name, or None."""
    value: Any = config
    for key in name.split("."):
        value = value.get(key) if isinstance(value, Mapping) else None
    return value


def config_problems(config: Mapping[str, Any]) -> list[Problem]:
    """Missing fields, and settings that would quantise the model or crop its context."""

    def problem(field: str, what: str, remedy: str = RELEASED) -> Problem:
        return Problem("config.json", field, what, remedy)

    problems = [
        problem(name, "is missing") for name in CONFIG_FIELDS if _field(config, name) is None
    ]
    if not config.get("enable_audio_output", True):
        problems.append(problem("enable_audio_output", "is false, so there is no native talker"))
    for name in ("", "thinker_config.", "talker_config."):
        field = f"{name}quantization_config"
        if _field(config, field):
            problems.append(problem(field, "is set; quantised weights are refused"))
    for name in ("thinker_config.text_config", "talker_config"):
        if _field(config, f"{name}.use_sliding_window"):
            problems.append(problem(f"{name}.use_sliding_window", "crops the context"))
    return problems


def tokenizer_problems(folder: Path, config: Mapping[str, Any] | None) -> list[Problem]:
    """Missing files, and special tokens that are several tokens or not those of the config."""
    if not (folder / "tokenizer.json").is_file():
        absent = [name for name in TOKENIZER_FILES[1:] if not (folder / name).is_file()]
        if len(absent) == 2:
            return [Problem("tokenizer.json", None, "is missing, and vocab.json is too", AGAIN)]
        if absent:
            return [_missing(name) for name in absent]
    broken = [p for name in TOKENIZER_FILES[:2] for p in _json_file(folder / name)[1]]
    if broken or not (folder / "tokenizer_config.json").is_file():
        return broken
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:
        return [Problem("tokenizer_config.json", None, f"cannot be loaded ({error})", AGAIN)]
    problems = []
    for token in (*TURN_TOKENS, *UNIT_TOKENS):
        ids = tokenizer.encode(token, add_special_tokens=False)
        field = UNIT_TOKENS.get(token)
        wanted = _field(config, f"thinker_config.{field}") if config and field else ids[0]
        if len(ids) != 1:
            what = f"{token} is {len(ids)} tokens and not one special token"
            problems.append(Problem("tokenizer_config.json", "added tokens", what, RELEASED))
        elif ids[0] != wanted:
            what = f"is {wanted}, the tokenizer's {token} is {ids[0]}"
            problems.append(Problem("config.json", f"thinker_config.{field}", what, RELEASED))
    return problems


def preprocessor_problems(folder: Path, config: Mapping[str, Any] | None) -> list[Problem]:
    """A log-mel that the audio encoder does not take."""
    name = "preprocessor_config.json"
    given, problems = _json_file(folder / name)
    if given is None:
        return problems
    wanted = dict(MEL)
    if config is not None:
        bins = _field(config, "thinker_config.audio_config.num_mel_bins")
        wanted["feature_size"] = 128 if bins is None else bins
    return [
        Problem(name, field, f"is {given.get(field)!r}, the model takes {value}", RELEASED)
        for field, value in wanted.items()
        if given.get(field) != value
    ]


def voice_problems(folder: Path, name: str, config: Mapping[str, Any] | None) -> list[Problem]:
    """A voice file that cannot be read, lacks the voice, or has only part of it."""
    path = folder / "spk_dict.pt"
    if not path.is_file():
        return []
    try:
        voices = torch.load(path, map_location="cpu", weights_only=True)
        known = sorted(voices)
    except Exception as error:
        return [Problem(path.name, None, f"cannot be read ({type(error).__name__})", AGAIN)]
    if name not in voices:
        what = f"is {name!r}; spk_dict.pt has {', '.join(known)}"
        return [Problem("config/models.yaml", "settings.speaker", what, "Take one of them")]
    voice = voices[name]
    problems = [
        Problem(path.name, f"{name}.{part}", "is missing", RELEASED)
        for part in VOICE
        if part not in voice
    ]
    words = None if config is None else _field(config, "thinker_config.text_config.vocab_size")
    if not problems and words is not None and not 0 <= int(voice["bos_token"]) < words:
        what = f"is {voice['bos_token']}, the vocabulary has {words} words"
        problems.append(Problem(path.name, f"{name}.bos_token", what, RELEASED))
    return problems


def shard_names(folder: Path) -> list[str]:
    """Names of the weight files.

    Raises:
        HfdError: the index is no JSON.
        KeyError: it has no ``weight_map``.
    """
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        return sorted(set(read_json(index)["weight_map"].values()))
    return ["model.safetensors"]


def read_shapes(folder: Path) -> tuple[Shapes, list[Problem]]:
    """All tensors by the shards' headers, and what is wrong with the shards."""
    index = "model.safetensors.index.json"
    try:
        names = shard_names(folder)
    except HfdError as error:
        return {}, [Problem(index, None, error.problem, AGAIN)]
    except (KeyError, TypeError, AttributeError):
        return {}, [Problem(index, "weight_map", "is missing", AGAIN)]
    shapes: Shapes = {}
    problems = []
    for name in names:
        try:
            shapes |= _shard_shapes(folder / name)
        except HfdError as error:
            problems.append(Problem(name, None, error.problem, AGAIN))
    return shapes, problems


def _shard_shapes(path: Path) -> Shapes:
    """The tensors of one safetensors file, from its header.

    Raises:
        HfdError: the file is missing, a pointer, cut short, or no safetensors file.
    """
    if not path.is_file():
        raise HfdError("is missing")
    size = path.stat().st_size
    with path.open("rb") as stream:
        start = stream.read(64)
        length = int.from_bytes(start[:8], "little")
        if start.startswith(b"version https://git-lfs"):
            raise HfdError("is a pointer of Git LFS, without the weights")
        if size < 8 + length:
            raise HfdError(f"is cut short or no safetensors file ({size} bytes)")
        stream.seek(8)
        text = stream.read(length)
    try:
        header = json.loads(text)
        tensors = {key: value for key, value in header.items() if key != "__metadata__"}
        end = max((value["data_offsets"][1] for value in tensors.values()), default=0)
        shapes = {key: (value["shape"], value["dtype"]) for key, value in tensors.items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise HfdError(f"has no header of a safetensors file ({type(error).__name__})") from error
    if size != 8 + length + end:
        raise HfdError(f"is cut short: {size} of {8 + length + end} bytes")
    return shapes


def tensor_problems(folder: Path, found: Shapes, head: str) -> list[Problem]:
    """Compare names, shapes and types of all tensors with the model the config describes."""
    config = AutoConfig.from_pretrained(folder, local_files_only=True)
    with torch.device("meta"):
        model = Qwen2_5OmniForConditionalGeneration(config)
    wanted = {key: list(value.shape) for key, value in model.state_dict().items()}

    def problem(key: str, what: str) -> Problem:
        return Problem("weights", f"tensor {key}", what, "Take all shards of one release")

    problems = [problem(key, "is missing") for key in sorted(wanted.keys() - found.keys())]
    problems += [
        problem(key, f"has shape {found[key][0]}, the config wants {wanted[key]}")
        for key in sorted(wanted.keys() & found.keys())
        if found[key][0] != wanted[key]
    ]
    problems += [
        problem(key, f"(speak head {head!r}) is missing")
        for key in speak_head.head_keys(head)
        if key not in found
    ]
    mixed, layers = found.get(speak_head.MIXER), gate_layers(config)
    if mixed is not None and mixed[0] != [len(layers)]:
        what = f"mixes {mixed[0]} layers, the config names {list(layers)}"
        problems.append(problem(speak_head.MIXER, f"the speak head {what}"))
    types = Counter(kind for _, kind in found.values())
    problems += [
        problem(f"type {kind}", f"is that of {count}; quantised weights are refused")
        for kind, count in sorted(types.items())
        if kind not in FLOATS
    ]
    return problems


def gate_layers(config: Any) -> tuple[int, ...]:
    """Layers the speak head mixes, from wherever the config keeps them."""
    for where in (config, config.thinker_config, config.thinker_config.text_config):
        if getattr(where, "gate_layer_ids", None):
            return tuple(where.gate_layer_ids)
    return speak_head.LAYERS


def hashed_files(folder: Path) -> Iterable[str]:
    """Small files that decide what the model does, those that are there."""
    names = (*FILES, *TOKENIZER_FILES, "model.safetensors.index.json")
    return [name for name in names if (folder / name).is_file()]
