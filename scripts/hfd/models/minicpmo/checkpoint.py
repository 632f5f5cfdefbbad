"""Everything that is wrong with a snapshot, found before a single weight is read.

Nothing of the snapshot's code runs here, and no torch is needed.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import soundfile

from hfd.errors import HfdError
from hfd.files import read_json, sha256_bytes, sha256_file
from hfd.models.weights import BLOCK_BYTES, BLOCKS, sampled_file

CODE_FILES = (
    "configuration_minicpmo.py",
    "modeling_minicpmo.py",
    "modeling_navit_siglip.py",
    "processing_minicpmo.py",
    "tokenization_minicpmo_fast.py",
    "utils.py",
)
"""What loading runs: the model's code is part of its snapshot."""
FILES = ("config.json", "preprocessor_config.json", "tokenizer_config.json")
VOCODER = Path("assets/token2wav")
VOCODER_FILES = (
    "speech_tokenizer_v2_25hz.onnx",
    "campplus.onnx",
    "flow.yaml",
    "flow.pt",
    "hift.pt",
)
FLOW_TAGS = ("!new:cosyvoice2.flow.", "!new:cosyvoice2.transformer.")
"""What flow.yaml may construct: its tags name Python classes that are called while it is read."""
VOICE = Path("assets/HT_ref_audio.wav")
MAX_VOICE_S = 16.9
"""The vocoder's buffer holds 1000 mel frames: the voice, 100 before the chunk, and the chunk."""
FLOATS = ("F32", "BF16", "F16")
"""Tensor types of a checkpoint that is not quantised, as safetensors names them."""
VERSION = "4.5"
INNER_FOLDERS = ("", "Realtime-Venus-Omni", "model_weight/model_weight", "model_weight")
"""Where a download of Realtime-Venus keeps the model, from the folder that was given."""
INDEX = "model.safetensors.index.json"


@dataclass(frozen=True)
class Snapshot:
    """A snapshot's folder and the voice it speaks with.

    Attributes:
        folder: where config.json lies.
        voice: the WAV file.
    """

    folder: Path
    voice: Path


def find_snapshot(model_path: str, voice: str | None) -> Snapshot:
    """The folder that holds config.json: the given one, or one in which Venus nests its model.

    Raises:
        HfdError: no folder, or no config.json in any of those.
    """
    given = Path(model_path).expanduser()
    if not given.is_dir():
        raise HfdError(
            f"is {model_path!r}, which is no folder",
            field="settings.model_path",
            remedy="Give the folder of a downloaded snapshot; hub ids are not fetched, because"
            " loading runs the snapshot's own code (docs/minicpmo.md, Weights)",
        )
    for inner in INNER_FOLDERS:
        folder = given / inner
        if (folder / "config.json").is_file():
            path = Path(voice).expanduser() if voice else folder / VOICE
            return Snapshot(folder.resolve(), path)
    raise HfdError(
        f"holds no config.json, nor do {', '.join(str(given / f) for f in INNER_FOLDERS if f)}",
        file=given,
        field="settings.model_path",
        remedy="Give the folder of the whole snapshot (docs/minicpmo.md, Weights)",
    )


def snapshot_problems(snapshot: Snapshot) -> list[str]:
    """Everything that is wrong with the files, one sentence each."""
    folder = snapshot.folder
    wanted = [*FILES, *CODE_FILES, *(str(VOCODER / name) for name in VOCODER_FILES)]
    problems = [f"file {name} is missing" for name in wanted if not (folder / name).is_file()]
    if not (folder / "tokenizer.json").is_file():
        parts = ("vocab.json", "merges.txt")
        if not all((folder / name).is_file() for name in parts):
            problems.append("file tokenizer.json is missing (or vocab.json and merges.txt)")
    problems += _config_problems(folder / "config.json")
    problems += shard_problems(folder)
    problems += _flow_problems(folder / VOCODER / "flow.yaml")
    return problems + voice_problems(snapshot.voice)


def _config_problems(path: Path) -> list[str]:
    try:
        config = read_json(path)
    except HfdError as error:
        return [str(error)]
    if not isinstance(config, Mapping):
        return ["config.json is no object"]
    problems = []
    if config.get("model_type") != "minicpmo" or str(config.get("version")) != VERSION:
        found = f"{config.get('model_type')!r} {config.get('version')!r}"
        problems.append(f"config.json is of {found}; this runner is for 'minicpmo' {VERSION!r}")
    parts = {"": config} | {k: v for k, v in config.items() if isinstance(v, Mapping)}
    for name, part in parts.items():
        place = f"config.json: {name}.".removesuffix(" .") if name else "config.json: "
        if part.get("quantization_config"):
            problems.append(f"{place}quantization_config is set; quantised weights are refused")
        if part.get("use_sliding_window"):
            problems.append(f"{place}use_sliding_window crops the context")
    return problems


def shard_names(folder: Path) -> list[str]:
    """Names of the weight files."""
    if (folder / INDEX).is_file():
        return sorted(set(read_json(folder / INDEX)["weight_map"].values()))
    return ["model.safetensors"]


def shard_problems(folder: Path) -> list[str]:
    """What is wrong with a folder's weight files."""
    try:
        names = shard_names(folder)
        index = read_json(folder / INDEX)["weight_map"] if (folder / INDEX).is_file() else {}
    except (HfdError, KeyError, TypeError, AttributeError) as error:
        return [f"{INDEX} cannot be read ({error})"]
    problems: list[str] = []
    types: Counter[str] = Counter()
    for name in names:
        if not (folder / name).is_file():
            problems.append(f"file {name} is missing")
            continue
        try:
            tensors = _header(folder / name)
        except ValueError as error:
            problems.append(f"{name} {error}")
            continue
        types.update(tensors.values())
        promised = {key for key, shard in index.items() if shard == name}
        lacking = sorted(promised - tensors.keys())
        if lacking:
            problems.append(f"{name} lacks {len(lacking)} tensors of the index, e.g. {lacking[0]}")
    return problems + [
        f"{count} tensors are of type {kind}; quantised weights are refused"
        for kind, count in sorted(types.items())
        if kind not in FLOATS
    ]


def _header(path: Path) -> dict[str, str]:
    """Names and types of a safetensors file's tensors.

    Raises:
        ValueError: the file was not written to its end, or is none.
    """
    size = path.stat().st_size
    with path.open("rb") as stream:
        length = int.from_bytes(stream.read(8), "little")
        if not 2 <= length <= size - 8:
            raise ValueError("is no safetensors file")
        try:
            header = json.loads(stream.read(length))
            tensors = {key: value for key, value in header.items() if key != "__metadata__"}
            end = max((value["data_offsets"][1] for value in tensors.values()), default=0)
            kinds = {key: value["dtype"] for key, value in tensors.items()}
        except (UnicodeDecodeError, json.JSONDecodeError, KeyError, TypeError, IndexError) as error:
            raise ValueError(f"has a broken header ({error})") from error
    if 8 + length + end != size:
        raise ValueError(f"has {size} bytes, its header promises {8 + length + end}")
    return kinds


def penalty_problems(folder: Path, penalty: float | None) -> list[str]:
    """Say so if a length penalty is wanted that the snapshot's code does not take."""
    path = folder / "modeling_minicpmo.py"
    if penalty is None or not path.is_file():
        return []
    try:
        tree = ast.parse(path.read_text("utf-8"))
    except (SyntaxError, UnicodeDecodeError, ValueError) as error:
        return [f"{path.name} is no Python ({error})"]
    calls = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))
    arguments = (
        argument.arg
        for call in calls
        if call.name == "streaming_generate"
        for argument in [*call.args.args, *call.args.kwonlyargs]
    )
    if "length_penalty" in arguments:
        return []
    return [f"settings.length_penalty is {penalty}; this code takes none: write null"]


def _flow_problems(path: Path) -> list[str]:
    if not path.is_file():
        return []
    text = path.read_text("utf-8", errors="replace")
    return [
        f"{VOCODER / 'flow.yaml'} would call {tag}, which is none of the vocoder's classes"
        for tag in sorted(set(re.findall(r"![A-Za-z]+:\S*", text)))
        if not tag.startswith(FLOW_TAGS)
    ]


def voice_problems(path: Path) -> list[str]:
    """Say so if the voice cannot be used; without one the model would listen in silence."""
    if not path.is_file():
        return [f"voice file {path} is missing"]
    try:
        pcm, rate = soundfile.read(path, dtype="float32", always_2d=True)
    except (soundfile.SoundFileError, RuntimeError) as error:
        return [f"voice file {path} cannot be read ({error})"]
    seconds = len(pcm) / rate
    if seconds > MAX_VOICE_S:
        return [f"voice file {path} is {seconds:.1f} s long; the vocoder takes {MAX_VOICE_S} s"]
    if seconds < 1 or not abs(pcm).max() > 0:
        return [f"voice file {path} is {seconds:.1f} s long or silent; give some speech"]
    return []


def code_hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of every code file: what ran is known by them."""
    return {name: sha256_file(folder / name) for name in CODE_FILES}


def weights_hash(snapshot: Snapshot) -> tuple[str, str]:
    """Hash that changes with weights, vocoder and tokenizer, and what it covers."""
    folder = snapshot.folder
    parts: dict[str, Any] = {name: sha256_file(folder / name) for name in _small_files(folder)}
    parts |= {name: sampled_file(folder / name) for name in shard_names(folder)}
    parts |= {name: sha256_file(folder / VOCODER / name) for name in VOCODER_FILES}
    basis = f"config, tokenizer, vocoder; per shard size, header, {BLOCKS} x {BLOCK_BYTES} bytes"
    return sha256_bytes(json.dumps(parts, sort_keys=True).encode()), basis


def _small_files(folder: Path) -> Iterator[str]:
    for name in (*FILES, INDEX, "tokenizer.json", "vocab.json", "merges.txt"):
        if (folder / name).is_file():
            yield name
