"""A tiny random snapshot of MiniCPM-o 4.5's architecture, run by the model's own public code.

The code is not in this repository: it comes from clones of public ones (`find_code`). The weights
are random, so what the model says is noise. Where the vocoder stands, a stand-in hums: the true one
has half a gigabyte of weights of fixed shapes.
"""

from __future__ import annotations

import importlib.machinery
import json
import shutil
import sys
import types
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import soundfile

from hfd.models.minicpmo.checkpoint import CODE_FILES, VOCODER, VOCODER_FILES, VOICE, Snapshot
from hfd.models.minicpmo.model import MiniCpmO
from hfd.models.minicpmo.session import Parts

BYTES = 256
SPECIAL = (
    *("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<unk>"),
    *("<image>", "</image>", "<slice>", "</slice>", "<image_id>", "</image_id>"),
    *("<ref>", "</ref>", "<box>", "</box>", "<quad>", "</quad>", "<unit>", "</unit>"),
    *("<|audio_start|>", "<|audio|>", "<|audio_end|>"),
    *("<|spk_bos|>", "<|spk|>", "<|spk_eos|>", "<|tts_bos|>", "<|tts_eos|>"),
    *("<|listen|>", "<|speak|>", "<|interrupt|>", "<|vad_start|>", "<|vad_end|>"),
    *("<|turn_bos|>", "<|turn_eos|>", "<|chunk_eos|>", "<|chunk_bos|>"),
    *("<|chunk_tts_bos|>", "<|chunk_tts_eos|>", "<|tts_pad|>", "<|audio_bos|>", "<|text_eos|>"),
    *("<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"),
)
IDS = {name: BYTES + number for number, name in enumerate(SPECIAL)}
VOCABULARY = BYTES + len(SPECIAL)
HIDDEN = 128
"""The resampler's heads are 128 wide."""
CODE_SAMPLES = 960


def find_code(peers: Path) -> dict[str, Path] | None:
    """The model's code files in clones of public repositories, or None where they are not all.

    `modeling_minicpmo.py` is the hub's; the other files are those of the official demo.
    """
    demo = peers / "MiniCPM-o-Demo/MiniCPMO45"
    files = {name: demo / name for name in CODE_FILES}
    files["modeling_minicpmo.py"] = peers / "Interaction_Train/modeling_minicpmo.py"
    return files if all(path.is_file() for path in files.values()) else None


def config() -> dict[str, Any]:
    """config.json of the tiny snapshot, in the layout of the published one."""
    text = {
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 32,
        "max_position_embeddings": 4096,
        "rope_theta": 1e6,
        "rms_norm_eps": 1e-6,
        "tie_word_embeddings": False,
        "hidden_act": "silu",
        "attention_bias": False,
        "sliding_window": 4096,
        "use_sliding_window": False,
        "bos_token_id": IDS["<|endoftext|>"],
        "eos_token_id": IDS["<|im_end|>"],
    }
    vision = {
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "patch_size": 14,
        "image_size": 980,
    }
    audio = {
        "d_model": 32,
        "encoder_layers": 2,
        "encoder_attention_heads": 4,
        "encoder_ffn_dim": 128,
        "decoder_layers": 1,
        "decoder_attention_heads": 4,
        "decoder_ffn_dim": 128,
        "num_mel_bins": 80,
        "max_source_positions": 1500,
    }
    talker = {
        "llm_dim": HIDDEN,
        "llm_intermediate_size": 256,
        "hidden_size": 48,
        "intermediate_size": 96,
        "num_attention_heads": 4,
        "num_key_value_heads": 4,
        "num_hidden_layers": 2,
        "max_position_embeddings": 4096,
        "num_audio_tokens": 6562,
        "num_text_tokens": VOCABULARY,
        "num_vq": 1,
        "audio_bos_token_id": IDS["<|audio_bos|>"],
        "text_eos_token_id": IDS["<|text_eos|>"],
        "attention_type": "full_attention",
        "condition_type": "hidden_text_merge",
        "normalize_projected_hidden": True,
        "projector_type": "mlp",
        "backbone_model": "llama",
        "audio_tokenizer_type": "s3tokenizer_step_audio",
        "audio_tokenizer_sample_rate": 24_000,
        "hidden_act": "silu",
    }
    return {
        "architectures": ["MiniCPMO"],
        "model_type": "minicpmo",
        "version": "4.5",
        "auto_map": {
            "AutoConfig": "configuration_minicpmo.MiniCPMOConfig",
            "AutoModel": "modeling_minicpmo.MiniCPMO",
            "AutoModelForCausalLM": "modeling_minicpmo.MiniCPMO",
        },
        **text,
        "query_num": 64,
        "image_size": 448,
        "drop_vision_last_layer": False,
        "batch_vision_input": True,
        "use_image_id": True,
        "vision_batch_size": 16,
        "audio_pool_step": 5,
        "audio_chunk_length": 1.0,
        "stream_input": True,
        "slice_config": {"max_slice_nums": 1, "patch_size": 14, "scale_resolution": 448},
        "vision_config": vision,
        "audio_config": audio,
        "tts_config": talker,
    }


def preprocessor() -> dict[str, Any]:
    """preprocessor_config.json: what the image and sound processors need, as published."""
    return {
        "image_processor_type": "MiniCPMVImageProcessor",
        "feature_extractor_type": "MiniCPMAAudioProcessor",
        "processor_class": "MiniCPMOProcessor",
        "auto_map": {
            "AutoProcessor": "processing_minicpmo.MiniCPMOProcessor",
            "AutoImageProcessor": "processing_minicpmo.MiniCPMVImageProcessor",
            "AutoFeatureExtractor": "processing_minicpmo.MiniCPMAAudioProcessor",
        },
        "max_slice_nums": 9,
        "scale_resolution": 448,
        "patch_size": 14,
        "use_image_id": True,
        "image_feature_size": 64,
        "im_start": "<image>",
        "im_end": "</image>",
        "slice_start": "<slice>",
        "slice_end": "</slice>",
        "unk": "<unk>",
        "im_id_start": "<image_id>",
        "im_id_end": "</image_id>",
        "slice_mode": True,
        "audio_pool_step": 5,
        "norm_mean": [0.5, 0.5, 0.5],
        "norm_std": [0.5, 0.5, 0.5],
        "version": 4.5,
    }


def tokenizer_config() -> dict[str, Any]:
    plain = {"lstrip": False, "rstrip": False, "normalized": False, "single_word": False}
    return {
        "tokenizer_class": "MiniCPMOTokenizerFast",
        "auto_map": {
            "AutoTokenizer": [None, "tokenization_minicpmo_fast.MiniCPMOTokenizerFast"],
        },
        "added_tokens_decoder": {
            str(number): {"content": name, "special": True, **plain} for name, number in IDS.items()
        },
        "bos_token": "<|im_start|>",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "unk_token": "<unk>",
        "bad_token_ids": [],
        "model_max_length": 131_072,
        "errors": "replace",
        "additional_special_tokens": [],
    }


def write_files(
    folder: Path, code: dict[str, Path] | None, shapes: dict[str, Any] | None = None
) -> None:
    """Everything but the weights; without code, empty files in its place.

    The code of the demo lacks one function that the hub's imports for its chat mode, which is never
    called here.

    Args:
        folder: made if it does not exist.
        code: from `find_code`.
        shapes: another config.json than the tiny one.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for name in CODE_FILES:
        if code is None:
            (folder / name).write_text("", "utf-8")
        else:
            shutil.copyfile(code[name], folder / name)
    if code is not None and "def normalize_content" not in (folder / "utils.py").read_text("utf-8"):
        with (folder / "utils.py").open("a", encoding="utf-8") as stream:
            stream.write("\n\ndef normalize_content(content):\n    return content\n")
    _write(folder / "config.json", shapes or config())
    _write(folder / "preprocessor_config.json", preprocessor())
    _write(folder / "tokenizer_config.json", tokenizer_config())
    _write(folder / "vocab.json", {symbol: n for n, symbol in enumerate(sorted(byte_symbols()))})
    (folder / "merges.txt").write_text("#version: 0.2\n", "utf-8")
    vocoder = folder / VOCODER
    vocoder.mkdir(parents=True, exist_ok=True)
    for name in VOCODER_FILES:
        (vocoder / name).write_bytes(b"")
    write_voice(folder / VOICE)


def byte_symbols() -> list[str]:
    """The 256 characters by which byte-level tokenizers write bytes."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) for byte in printable] + [chr(256 + n) for n in range(len(others))]


def write_voice(path: Path, seconds: float = 1.5) -> None:
    """A voice of noise."""
    noise = np.random.default_rng(0).standard_normal(int(16_000 * seconds)) * 0.05
    soundfile.write(path, noise.astype(np.float32), 16_000)


def make_snapshot(folder: Path, code: dict[str, Path], seed: int = 0) -> None:
    """Write the whole snapshot; transformers runs the code to make the weights."""
    import torch
    from transformers import AutoConfig, AutoModel

    write_files(folder, code)
    torch.manual_seed(seed)
    made = AutoConfig.from_pretrained(folder, trust_remote_code=True)
    model = AutoModel.from_config(made, trust_remote_code=True)
    model.save_pretrained(folder)
    _write(folder / "config.json", config())  # save_pretrained has written its own


def random_model(folder: Path, dtype: Any, device: str, seed: int = 0) -> Any:
    """The model of a snapshot's config and code, of random weights made on the device.

    Upstream's own start of the vision encoder's weights is fifty times a trained one's; bfloat16
    keeps nothing of what such layers compute.
    """
    import torch
    from transformers import AutoConfig, AutoModel

    config = AutoConfig.from_pretrained(folder, trust_remote_code=True)
    torch.manual_seed(seed)
    with torch.device(device):
        model = AutoModel.from_config(
            config, trust_remote_code=True, torch_dtype=dtype, attn_implementation="sdpa"
        )
    for weight in model.vpm.parameters():
        if weight.ndim == 2:
            torch.nn.init.normal_(weight, std=0.02)
    model.config._name_or_path = str(folder)
    return model.to(device, dtype).eval().requires_grad_(False)


class RandomMiniCpmO(MiniCpmO):
    """The runner over a model of random weights.

    Args:
        settings: without `model_path`.
        snapshot: where its code, voice and vocoder lie.
        model: from `random_model`.
    """

    def __init__(self, settings: Mapping[str, Any], snapshot: Snapshot, model: Any) -> None:
        super().__init__({"model_path": str(snapshot.folder), **settings})
        self._snapshot, self._model = snapshot, model

    def load_parts(self) -> Parts:
        from hfd.models.minicpmo import loader

        return loader.make_parts(self.settings, self._snapshot, self._model, (None, "random"))


class StandInVocoder:
    """Hums: 960 samples for each code, with the true vocoder's look-ahead of three codes."""

    def __init__(self, model_dir: str, float16: bool = False, n_timesteps: int = 10) -> None:
        self.flow = types.SimpleNamespace(pre_lookahead_len=3)
        self.cache: Any = None
        self.stream_cache: Any = None
        self.hift_cache_dict: Any = None

    def set_stream_cache(self, prompt_wav: str) -> tuple[dict[str, Any], dict[str, Any]]:
        import torch

        self.cache = prompt_wav
        return {"sounded": torch.zeros(1)}, {"mel": torch.zeros(1)}

    def stream(self, codes: list[int], prompt_wav: str, last_chunk: bool = False) -> bytes:
        used = codes if last_chunk else codes[:-3]
        pitch = np.repeat(100.0 + np.array(used) % 400, CODE_SAMPLES)
        wave = np.sin(np.cumsum(2 * np.pi * pitch / 24_000)) * 8000
        return wave.astype("<i2").tobytes()


def use_stand_in_vocoder() -> None:
    """Let `import stepaudio2` find the stand-in."""
    module = types.ModuleType("stepaudio2")
    module.__spec__ = importlib.machinery.ModuleSpec("stepaudio2", None)
    module.__dict__["Token2wav"] = StandInVocoder
    sys.modules["stepaudio2"] = module


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
