"""A Qwen3-TTS CustomVoice snapshot with random weights: true architecture, any size, no download.

    python scripts/make_tts_random.py FOLDER [--full-size]

Tests use the tiny size, benchmarks/tts_frame.py the shapes of the 0.6B release.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch

from hfd.errors import run_cli
from hfd.models.tts.loading import import_qwen_tts

TINY = {
    "talker": {
        "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 16,
        "text_hidden_size": 48, "mrope": [4, 2, 2],
    },
    "predictor": {
        "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1,
        "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 16,
    },
    "codec": {
        "codebook_dim": 32, "hidden_size": 32, "latent_dim": 32, "intermediate_size": 48,
        "num_attention_heads": 2, "num_key_value_heads": 2, "num_hidden_layers": 2,
        "decoder_dim": 64, "layer_scale_initial_scale": 0.1,
    },
}  # fmt: skip
FULL = {
    "talker": {
        "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28,
        "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
        "text_hidden_size": 2048, "mrope": [24, 20, 20],
    },
    "predictor": {
        "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 5,
        "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128,
    },
    "codec": {"codebook_dim": 512},
}  # fmt: skip
ENCODER = {
    "hidden_size": 32, "num_filters": 4, "num_hidden_layers": 1, "intermediate_size": 32,
    "num_attention_heads": 2, "num_key_value_heads": 2, "codebook_size": 64, "codebook_dim": 16,
    "vector_quantization_hidden_dimension": 16, "upsample_groups": 32, "num_quantizers": 16,
}  # fmt: skip
SPECIAL = ("<|endoftext|>", "<|im_start|>", "<|im_end|>", "<tts_pad>", "<tts_bos>", "<tts_eos>")
WORD = "assistant"  # one token in the released vocabulary: the prompt counts on it


def make_snapshot(folder: Path, sizes: dict[str, Any] = TINY, seed: int = 0) -> Path:
    """Write the snapshot; the same seed gives the same weights."""
    import_qwen_tts()
    from qwen_tts.core.models import Qwen3TTSConfig, Qwen3TTSForConditionalGeneration

    torch.manual_seed(seed)
    folder.mkdir(parents=True)
    first_special = _write_tokenizer(folder)
    config = Qwen3TTSConfig(**_config(sizes, first_special))
    dtype = torch.bfloat16 if sizes is FULL else torch.float32
    model = Qwen3TTSForConditionalGeneration(config).to(dtype)
    _spread(model)
    model.save_pretrained(folder)
    saved = json.loads((folder / "config.json").read_text())
    saved["speaker_encoder_config"] = {"sample_rate": 24000}  # it reads back no more than its own
    (folder / "config.json").write_text(json.dumps(saved))
    (folder / "generation_config.json").write_text("{}")
    _write_codec(folder / "speech_tokenizer", sizes["codec"], dtype)
    return folder


def _config(sizes: dict[str, Any], first_special: int) -> dict[str, Any]:
    talker = dict(sizes["talker"])
    rope = {"rope_type": "default", "mrope_section": talker.pop("mrope"), "interleaved": True}
    tokens = {name: first_special + place for place, name in enumerate(SPECIAL)}
    return {
        "tts_model_type": "custom_voice",
        "tts_model_size": "0b6",
        "tokenizer_type": "qwen3_tts_tokenizer_12hz",
        "im_start_token_id": tokens["<|im_start|>"],
        "im_end_token_id": tokens["<|im_end|>"],
        "tts_pad_token_id": tokens["<tts_pad>"],
        "tts_bos_token_id": tokens["<tts_bos>"],
        "tts_eos_token_id": tokens["<tts_eos>"],
        "talker_config": {
            **talker,
            "vocab_size": 3072, "num_code_groups": 16, "rope_scaling": rope, "rope_theta": 1e6,
            "text_vocab_size": 151936 if sizes is FULL else first_special + len(SPECIAL) + 1,
            "codec_eos_token_id": 2150, "codec_bos_id": 2149, "codec_pad_id": 2148,
            "codec_think_id": 2154, "codec_nothink_id": 2155, "codec_think_bos_id": 2156,
            "codec_think_eos_id": 2157,
            "spk_id": {"ryan": 3061, "eric": 2875},
            "spk_is_dialect": {"ryan": False, "eric": "sichuan_dialect"},
            "codec_language_id": {"chinese": 2055, "english": 2050, "sichuan_dialect": 2062},
            "code_predictor_config": {
                **sizes["predictor"], "vocab_size": 2048, "num_code_groups": 16,
            },
        },
    }  # fmt: skip


def _spread(model: torch.nn.Module) -> None:
    """Larger random weights, so that different text really gives different speech."""
    for parameter in model.parameters():
        if parameter.ndim > 1:
            parameter.data.normal_(0.0, 1.5 / parameter.shape[-1] ** 0.5)


def _write_tokenizer(folder: Path) -> int:
    """A byte-level tokenizer whose 256 tokens are the bytes; returns the first special id."""
    from transformers import Qwen2TokenizerFast
    from transformers.models.qwen2.tokenization_qwen2 import bytes_to_unicode

    symbols = bytes_to_unicode()
    vocabulary = {symbols[byte]: byte for byte in range(256)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    tokenizer = Qwen2TokenizerFast(
        vocab_file=str(folder / "vocab.json"),
        merges_file=str(folder / "merges.txt"),
        additional_special_tokens=[*SPECIAL[1:], WORD],
    )
    tokenizer.save_pretrained(folder)
    return len(vocabulary)


def _write_codec(folder: Path, sizes: dict[str, Any], dtype: torch.dtype) -> None:
    from qwen_tts.core import Qwen3TTSTokenizerV2Config, Qwen3TTSTokenizerV2Model
    from transformers import EncodecFeatureExtractor

    codec = Qwen3TTSTokenizerV2Model(
        Qwen3TTSTokenizerV2Config(encoder_config=ENCODER, decoder_config=dict(sizes))
    ).to(dtype)
    for name, parameter in codec.decoder.named_parameters():
        if name.endswith("embedding_sum"):
            parameter.data.normal_()
        elif parameter.ndim > 1:
            fan_in = parameter[0].numel()
            parameter.data.normal_(0.0, 0.8 / fan_in**0.5)  # quiet enough never to clip
    codec.save_pretrained(folder)
    EncodecFeatureExtractor(sampling_rate=24000).save_pretrained(folder)


def main(argv: list[str] | None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--full-size", action="store_true", help="shapes of the 0.6B release")
    arguments = parser.parse_args(argv)
    make_snapshot(arguments.folder, FULL if arguments.full_size else TINY)


if __name__ == "__main__":
    run_cli(main)
