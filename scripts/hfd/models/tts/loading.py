"""Load a Qwen3-TTS CustomVoice snapshot into a `QwenVoice`, and say what was loaded."""

from __future__ import annotations

import contextlib
import importlib
import importlib.machinery
import importlib.metadata
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from hfd.errors import HfdError
from hfd.files import sha256_bytes, sha256_file
from hfd.models.tts.talker import QwenVoice

_UNUSED = ("torchaudio", "torchaudio.compliance", "torchaudio.compliance.kaldi")


class _Placeholder(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise ImportError(f"{self.__name__}.{name} is needed by 25 Hz tokenizers only")


@contextlib.contextmanager
def _without_torchaudio() -> Iterator[None]:
    """Let qwen_tts import where torchaudio is missing or does not fit torch.

    Only its 25 Hz tokenizer uses torchaudio; a placeholder that raises when used is enough.
    """
    try:
        importlib.import_module("torchaudio.compliance.kaldi")
        yield
        return
    except (ImportError, OSError):
        pass
    modules = {name: _Placeholder(name) for name in _UNUSED}
    for name, module in modules.items():
        module.__spec__ = importlib.machinery.ModuleSpec(name, None)
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(modules[parent], child, module)
    saved = {name: sys.modules.get(name) for name in _UNUSED}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, earlier in saved.items():
            if earlier is None:
                del sys.modules[name]
            else:
                sys.modules[name] = earlier


def import_qwen_tts() -> types.ModuleType:
    """The package qwen_tts, with or without torchaudio.

    Raises:
        HfdError: it is not installed.
    """
    with _without_torchaudio():
        try:
            return importlib.import_module("qwen_tts")
        except ModuleNotFoundError as error:
            raise HfdError(
                f"the Python package {error.name!r} is missing",
                remedy="Run the TTS server in the environment of envs/tts.yaml",
            ) from error


def load_model(folder: Path, device: str, attention: str = "sdpa") -> tuple[Any, Any]:
    """The loaded ``Qwen3TTSForConditionalGeneration`` and its text tokenizer.

    bfloat16 on CUDA, float32 elsewhere; nothing is fetched from anywhere. `attention` is that of
    qwen-tts's own forward, which a `QwenVoice` does not use.

    Raises:
        HfdError: no snapshot in `folder`, or not a CustomVoice model with the 12 Hz tokenizer.
    """
    if not (folder / "config.json").is_file():
        raise HfdError(
            "is no model snapshot (config.json is missing)",
            file=folder,
            remedy="Give the folder of Qwen/Qwen3-TTS-12Hz-0.6B-CustomVoice",
        )
    qwen_tts = import_qwen_tts()
    dtype = torch.bfloat16 if device.startswith("cuda") else torch.float32
    loaded = qwen_tts.Qwen3TTSModel.from_pretrained(
        str(folder),
        device_map=device,
        dtype=dtype,
        attn_implementation=attention,
        local_files_only=True,
    )
    model = loaded.model
    if model.tts_model_type != "custom_voice" or "12hz" not in str(model.tokenizer_type):
        raise HfdError(
            f"is a {model.tts_model_type} model with a {model.tokenizer_type} tokenizer",
            file=folder,
            remedy="A CustomVoice model with the 12 Hz tokenizer is needed",
        )
    model.eval()
    model.speech_tokenizer.model.eval()
    return model, loaded.processor.tokenizer


def weights_id(folder: Path) -> str:
    """SHA-256 over names and hashes of the snapshot's weight and configuration files."""
    files = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix in (".safetensors", ".json", ".bin", ".txt") and path.is_file()
    )
    lines = [f"{path.relative_to(folder).as_posix()} {sha256_file(path)}" for path in files]
    return sha256_bytes("\n".join(lines).encode())


def load_voice(
    folder: Path, device: str, captured: bool, slots: int, max_frames: int
) -> tuple[QwenVoice, dict[str, Any], tuple[str, ...], tuple[str, ...]]:
    """A ready voice, what it is, and its speakers and languages, defaults first."""
    model, tokenizer = load_model(folder, device)
    voice = QwenVoice(model, tokenizer, captured=captured, slots=slots, max_frames=max_frames)
    info = {
        "model": folder.name,
        "weights_id": weights_id(folder),
        "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else device,
        "dtype": str(next(model.parameters()).dtype).removeprefix("torch."),
        "attention": "sdpa",
        "acceleration": "cuda_graph" if captured else "plain",
        "versions": {
            name: importlib.metadata.version(name) for name in ("torch", "transformers", "qwen-tts")
        },
    }
    talker = model.config.talker_config
    speakers = tuple(name.lower() for name in talker.spk_id)
    languages = tuple(
        name.lower() for name in talker.codec_language_id if "dialect" not in name.lower()
    )
    return voice, info, speakers, ("auto", *languages)
