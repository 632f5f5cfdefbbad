"""Load a snapshot with its own code: offline, from its folder alone, everything checked first.

The snapshot's Python files are part of the model: loading runs them. transformers copies them into
a cache of modules by the folder's last name, so each process has a cache of its own, set before
transformers is imported.
"""

from __future__ import annotations

import atexit
import importlib
import logging
import os
import platform
import shutil
import sys
import tempfile
import time
from collections import Counter
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from hfd.duplex.model import Identity
from hfd.errors import HfdError
from hfd.files import sha256_file
from hfd.media_time import SAMPLE_RATE
from hfd.models.minicpmo import checkpoint, upstream
from hfd.models.minicpmo.acceleration import accelerate
from hfd.models.minicpmo.checkpoint import Snapshot
from hfd.models.minicpmo.session import Parts
from hfd.models.minicpmo.settings import Settings

NAMES = {"minicpm": "MiniCPM-o 4.5", "venus": "Realtime-Venus-Omni"}
TRANSFORMERS = "4.51"
"""Release that the snapshot's code is written for."""
UTILS = "1.0.6"
"""Of minicpmo-utils; 1.0.7 is for the next model and wants other vocoder files."""
MAX_TORCHAUDIO = (2, 8)
"""From 2.9 on its `load` needs torchcodec and ignores the backend that the vocoder asks for."""
LOAD_SEED = 0
"""The vocoder draws the noise that its flow starts from while it is made."""
SILENT_VOCODER = "token2wav_initialized is uninitialized"
"""Upstream's warning where speech is dropped for lack of a cache."""


def load_parts(settings: Settings) -> Parts:
    """Check everything, then load onto one device.

    Raises:
        HfdError: all that is wrong with packages, files, voice, device and code.
    """
    device = pick_device(settings.device)
    snapshot = checkpoint.find_snapshot(settings.model_path, settings.voice)
    problems = [*package_problems(), *checkpoint.snapshot_problems(snapshot)]
    problems += checkpoint.penalty_problems(snapshot.folder, settings.length_penalty)
    _refuse(settings, [*problems, *memory_problems(device, settings.min_free_gpu_gb)])
    use_own_module_cache()
    torch.manual_seed(LOAD_SEED)
    model = _load_model(snapshot, pick_dtype(settings.dtype, device), device)
    return make_parts(settings, snapshot, model, checkpoint.weights_hash(snapshot))


def use_repeatable_kernels() -> None:
    """Of cuDNN's convolutions some, and its attention, add up in any order otherwise.

    With that attention upstream's loop in bfloat16 wrote other words at each repeat on an H200, and
    took longer (docs/performance.md).
    """
    torch.backends.cudnn.deterministic = True
    torch.backends.cuda.enable_cudnn_sdp(False)


def make_parts(
    settings: Settings, snapshot: Snapshot, model: Any, weights: tuple[str | None, str]
) -> Parts:
    """Everything that follows from a loaded model; benchmarks give one of random weights.

    Args:
        settings, snapshot: what was asked for, and where its files lie.
        model: upstream's, on its device.
        weights: hash of the weights, and what it covers.

    Raises:
        HfdError: the code lacks what the runner calls.
    """
    device = model.device
    use_repeatable_kernels()
    window = unset_windows(model)
    torch.manual_seed(LOAD_SEED)
    duplex = model.as_duplex(**_duplex_arguments(settings))
    freeze_vocoder(duplex)
    _refuse(settings, upstream.code_problems(duplex))
    watch_log(type(model).__module__)
    began = time.perf_counter()
    faster = accelerate(duplex, settings, device, str(snapshot.voice))
    warm_up_s = round(time.perf_counter() - began, 3)
    identity = Identity(
        name=NAMES[settings.variant],
        weights=weights[0],
        dtypes=dtype_counts(model),
        versions=versions(),
        device=device_name(device),
        max_context_tokens=int(model.config.max_position_embeddings),
        detail={
            "weights_basis": weights[1],
            "code": checkpoint.code_hashes(snapshot.folder),
            "voice_sha256": sha256_file(snapshot.voice),
            "attention": "sdpa",
            "sliding_window_unset": window,
            "load_seed": LOAD_SEED,
            "warm_up_s": warm_up_s,
            **faster.facts,
        },
    )
    return Parts(
        duplex=duplex,
        voice=read_voice(snapshot.voice),
        voice_path=str(snapshot.voice),
        seed=torch.manual_seed,
        no_codes=lambda: torch.empty(1, 0, 1, dtype=torch.long, device=device),
        positions=int(model.config.max_position_embeddings),
        talker_positions=int(model.tts.config.max_position_embeddings),
        identity=identity,
        look_ahead=faster.look_ahead,
    )


def _refuse(settings: Settings, problems: list[str]) -> None:
    if problems:
        raise HfdError(
            "cannot be run:\n  " + "\n  ".join(problems),
            file=settings.model_path,
            field="settings.model_path",
            remedy="See docs/minicpmo.md, Weights",
        )


def package_problems() -> list[str]:
    """Packages of another release than the snapshot's code is written for."""
    problems = []
    for name, wanted in (("transformers", TRANSFORMERS), ("minicpmo-utils", UTILS)):
        found = _version(name)
        if found is None or not f"{found}.".startswith(f"{wanted}."):
            problems.append(f"{name} is {found or 'not installed'}; {wanted} is needed")
    found = _version("torchaudio")
    if found is None or tuple(int(p) for p in found.split(".")[:2]) > MAX_TORCHAUDIO:
        problems.append(f"torchaudio is {found or 'not installed'}; at most 2.8 reads the voice")
    try:
        importlib.import_module("librosa")
    except Exception as error:  # librosa 0.9 fails in several ways, e.g. without pkg_resources
        problems.append(f"librosa cannot be imported ({error}); setuptools below 81 is needed")
    if os.environ.get("USE_FLAGOS") == "1":
        problems.append("USE_FLAGOS=1 would replace the model's norms; unset it")
    return problems


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def versions() -> dict[str, str]:
    """Of Python and the packages that compute."""
    names = ("torch", "torchaudio", "transformers", "minicpmo-utils", "onnxruntime", "numpy")
    found = {name: _version(name) for name in names}
    return {"python": platform.python_version()} | {n: v for n, v in found.items() if v}


def pick_device(name: str) -> torch.device:
    """The device of that name; ``auto`` is the first GPU, else the CPU."""
    if name == "auto":
        name = "cuda:0" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise HfdError(
            f"is {name!r}, but torch {torch.__version__} sees no GPU",
            field="settings.device",
            remedy="Run on a GPU node, or install a CUDA build of torch (docs/minicpmo.md)",
        )
    return torch.device(name)


def pick_dtype(name: str, device: torch.device) -> torch.dtype:
    """Number type of everything but the vocoder."""
    if name == "auto":
        name = "bfloat16" if device.type == "cuda" else "float32"
    return getattr(torch, name)


def device_name(device: torch.device) -> str:
    """Of the GPU, or ``cpu``."""
    return torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"


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


def use_own_module_cache() -> None:
    """Let this process copy snapshot code where no other process does; nothing is downloaded."""
    if _own_cache:
        return
    if "transformers" in sys.modules:
        raise RuntimeError("transformers was imported before the module cache was set")
    folder = tempfile.mkdtemp(prefix="hfd-modules-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ.update(HF_MODULES_CACHE=folder, HF_HUB_OFFLINE="1", TRANSFORMERS_OFFLINE="1")
    _own_cache.append(folder)


_own_cache: list[str] = []
"""The folder that this process's snapshot code is copied to, once it is set."""


def _load_model(snapshot: Snapshot, dtype: torch.dtype, device: torch.device) -> Any:
    import transformers  # after the module cache is set

    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    model = transformers.AutoModel.from_pretrained(
        str(snapshot.folder),
        trust_remote_code=True,
        local_files_only=True,
        attn_implementation="sdpa",
        torch_dtype=dtype,
        init_vision=True,
        init_audio=True,
        init_tts=True,
    )
    return model.eval().requires_grad_(False).to(device)


def unset_windows(model: Any) -> int | None:
    """Take the attention window out of the language model, and say what it was.

    transformers 4.51 masks what is further back than `sliding_window` although
    `use_sliding_window` is false: that would crop the context unseen.
    """
    found = getattr(model.config, "sliding_window", None)
    for config in (model.config, model.llm.config, model.llm.model.config):
        config.sliding_window = None
    return found


def _duplex_arguments(settings: Settings) -> dict[str, Any]:
    return {
        "generate_audio": True,
        "sliding_window_mode": settings.window,
        "max_new_speak_tokens_per_chunk": settings.tokens_per_unit,
        "force_listen_count": settings.force_listen_s,
        "tts_temperature": settings.speech_temperature,
        "tts_repetition_penalty": settings.speech_repetition_penalty,
        "n_timesteps": settings.num_steps,
    }


def freeze_vocoder(duplex: Any) -> None:
    """No gradients: upstream computes the voice's embedding without a guard of its own."""
    vocoder = duplex.model.tts.audio_tokenizer
    for name in ("flow", "hift", "audio_tokenizer"):
        part = getattr(vocoder, name, None)
        if isinstance(part, torch.nn.Module):
            part.requires_grad_(False)


class _SilentVocoder(logging.Handler):
    """Turns upstream's warning that it drops speech into an error."""

    def emit(self, record: logging.LogRecord) -> None:
        if SILENT_VOCODER in record.getMessage():
            raise RuntimeError("upstream drops speech: its vocoder has no cache")


def watch_log(module: str) -> None:
    """Watch the log of the snapshot's code."""
    logging.getLogger(module).addHandler(_SilentVocoder())


def read_voice(path: Path) -> np.ndarray:
    """The voice as the model hears it, float32 mono at 16 kHz, read as upstream's examples do."""
    import librosa

    pcm, _ = librosa.load(path, sr=SAMPLE_RATE, mono=True)
    return np.asarray(pcm, np.float32)


def dtype_counts(model: torch.nn.Module) -> dict[str, int]:
    """Number of parameters of each type."""
    counts: Counter[str] = Counter()
    for parameter in model.parameters():
        counts[str(parameter.dtype).removeprefix("torch.")] += parameter.numel()
    return dict(counts)
