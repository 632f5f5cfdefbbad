"""Load a ROMA snapshot that has been found whole (`hfd.models.roma.snapshot`) onto one device."""

from __future__ import annotations

import json
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
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
from hfd.files import sha256_bytes, sha256_file
from hfd.models.packages import ENVS, Packages, compare_packages
from hfd.models.roma import speak_head
from hfd.models.roma.capacity import memory_need
from hfd.models.roma.prompt import make_turns
from hfd.models.roma.settings import Settings
from hfd.models.roma.snapshot import (
    Problem,
    Shapes,
    find_snapshot,
    gate_layers,
    hashed_files,
    read_shapes,
    shard_names,
    snapshot_problems,
)
from hfd.models.weights import BLOCK_BYTES, BLOCKS, sampled_file

TRANSFORMERS = "5.17"
"""Release whose module layout the runner uses (requirements/roma.txt pins it)."""
CONFIG_FILE = "config/models.yaml"
_OTHER_VOCABULARY = re.compile(
    r"Model config: (tts_text|vision|audio)_\w+_token_id must be .* within the vocabulary"
)
_READ_APART = re.compile(r"gate_(head|mixer)")


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


def load_snapshot(settings: Settings, sessions: int = 1) -> Parts:
    """Check packages, snapshot and device, then load the snapshot onto the device.

    Args:
        settings: the runner's settings.
        sessions: how many will share it; the GPU must have room for as many caches.

    Raises:
        HfdError: everything that is wrong, at once.
    """
    packages = compare_packages(ENVS / "roma.yaml")
    problems = [*package_problems(packages), *device_problems(settings.device)]
    try:
        folder = find_snapshot(settings.model_path, settings.revision)
    except HfdError as error:
        if problems:
            problems.append(Problem(CONFIG_FILE, error.field, error.problem, error.remedy or ""))
            raise _refused(settings, problems) from error
        raise
    with quiet_transformers():
        problems += snapshot_problems(folder, settings.speak_head, settings.speaker)
        if not problems:
            problems += memory_problems(settings, folder, sessions)
        if problems:
            raise _refused(settings, problems)
        return _load(settings, folder, packages)


def _refused(settings: Settings, problems: Iterable[Problem]) -> HfdError:
    return HfdError(
        "cannot be run:\n  " + "\n  ".join(str(problem) for problem in problems),
        file=settings.model_path,
        field="settings.model_path",
        remedy="docs/roma.md, Weights, says what belongs there",
    )


def _load(settings: Settings, folder: Path, packages: Packages) -> Parts:
    device = pick_device(settings.device)
    model = Qwen2_5OmniForConditionalGeneration.from_pretrained(
        folder,
        dtype=pick_dtype(settings.dtype, device),
        attn_implementation="sdpa",
        local_files_only=True,
    )
    model = model.eval().requires_grad_(False).to(device)
    model.token2wav.float()
    keys = speak_head.head_keys(settings.speak_head)
    head = speak_head.SpeakHead.from_tensors(
        settings.speak_head, _read_tensors(folder, keys), gate_layers(model.config), str(device)
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
        facts={
            "weights_basis": basis,
            "revision": settings.revision,
            "packages_differ": packages.warnings(),
        },
    )


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Leave out what transformers warns of at every start for reasons that do not hold here.

    It compares the ids of the talker's text and media tokens, which are the thinker's words, with
    the talker's vocabulary of codes (14 lines); and it lists the speak head's tensors, which it
    does not know, as unexpected: they are read apart. Every other warning is shown.
    """

    def tells(record: logging.LogRecord) -> bool:
        text = record.getMessage()
        return not (_OTHER_VOCABULARY.search(text) or _READ_APART.search(text))

    transformers.logging.disable_progress_bar()
    handlers = logging.getLogger("transformers").handlers
    for handler in handlers:
        handler.addFilter(tells)
    try:
        yield
    finally:
        for handler in handlers:
            handler.removeFilter(tells)


def device_problems(name: str) -> list[Problem]:
    """A device that there is not; a CPU is taken only where the settings name it."""

    def problem(what: str, remedy: str) -> list[Problem]:
        return [Problem(CONFIG_FILE, "settings.device", f"is {name!r}, {what}", remedy)]

    if name == "cpu":
        return []
    if name != "auto" and not re.fullmatch(r"cuda(:\d+)?", name):
        return problem("which is no device", "Write auto, cpu, cuda or cuda:N")
    if not torch.cuda.is_available():
        remedy = "Run on a GPU node or install a CUDA build of torch; `device: cpu` for a CPU"
        return problem(f"but torch {torch.__version__} sees no GPU", remedy)
    count = torch.cuda.device_count()
    if name != "auto" and (torch.device(name).index or 0) >= count:
        return problem(f"but there are {count} GPUs (from 0)", "Name one of them, or auto")
    return []


def pick_device(name: str) -> torch.device:
    """The device of that name, which `device_problems` has found; ``auto`` is the first GPU."""
    if name == "cpu":
        return torch.device(name)
    return torch.device("cuda", torch.device("cuda" if name == "auto" else name).index or 0)


def pick_dtype(name: str, device: torch.device) -> torch.dtype:
    """Number type of thinker and talker."""
    if name == "auto":
        name = "bfloat16" if device.type == "cuda" else "float32"
    return getattr(torch, name)


def package_problems(packages: Packages) -> list[Problem]:
    """Packages that are missing, and a release of transformers with other modules."""
    problems = [
        Problem(packages.file, pin, "is not installed", "Install it into this environment")
        for pin in packages.missing
    ]
    found = transformers.__version__
    if found.split(".")[:2] != TRANSFORMERS.split("."):
        what = f"is {found}; the runner is made for {TRANSFORMERS}"
        problems.append(Problem(packages.file, "transformers", what, "Install that release"))
    return problems


def memory_problems(settings: Settings, folder: Path, sessions: int = 1) -> list[Problem]:
    """Say so if the GPU has less free memory than a run needs; the CPU is never refused."""
    device = pick_device(settings.device)
    if device.type != "cuda":
        return []
    need = settings.min_free_gpu_gb
    if need is None:
        config = AutoConfig.from_pretrained(folder, local_files_only=True)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        size = pick_dtype(settings.dtype, device).itemsize
        turns = make_turns(tokenizer, settings.system_prompt)
        weights = loaded_bytes(read_shapes(folder)[0], size)
        need = (weights + memory_need(config, settings, turns, size, sessions)) / 1e9
    free, total = torch.cuda.mem_get_info(device)
    if free >= need * 1e9:
        return []
    what = f"the GPU has {free / 1e9:.1f} of {total / 1e9:.1f} GB free, {need:.1f} GB are needed"
    fewer, each = (f"sessions ({sessions}) or ", " for each session") if sessions > 1 else ("", "")
    remedy = (
        f"Lower {fewer}settings.max_media_s ({settings.max_media_s:g} s, about 1 GB a minute{each})"
        " or free the card; nothing is quantised, offloaded or cropped to make it fit"
    )
    return [Problem(CONFIG_FILE, "settings.max_media_s", what, remedy)]


def loaded_bytes(shapes: Shapes, size: int) -> int:
    """Bytes of the weights on the device: `size` a number, four in the vocoder."""
    total = 0
    for key, (shape, _) in shapes.items():
        count = 1
        for side in shape:
            count *= side
        total += count * (4 if key.startswith("token2wav") else size)
    return total


def _read_tensors(folder: Path, keys: Iterable[str]) -> dict[str, torch.Tensor]:
    """Read single tensors out of the shards."""
    wanted, tensors = set(keys), {}
    for shard in shard_names(folder):
        with safe_open(folder / shard, "pt") as opened:
            for key in wanted & set(opened.keys()):
                tensors[key] = opened.get_tensor(key)
    return tensors


def weights_hash(folder: Path) -> tuple[str, str]:
    """Hash that changes with the weights, and what it covers.

    The bytes of a 20 GB snapshot are not read a second time: a sample of each shard
    (`sampled_file`) is hashed, small files are hashed whole.
    """
    parts: dict[str, Any] = {name: sha256_file(folder / name) for name in hashed_files(folder)}
    for name in shard_names(folder):
        parts[name] = sampled_file(folder / name)
    basis = (
        "index, configs, tokenizer, spk_dict.pt; per shard size, header,"
        f" {BLOCKS} x {BLOCK_BYTES} bytes"
    )
    return sha256_bytes(json.dumps(parts, sort_keys=True).encode()), basis


def pick_speaker(speakers: Mapping[str, Any], name: str, device: torch.device) -> Speaker:
    """The voice of that name, which `voice_problems` has found to be there."""
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
