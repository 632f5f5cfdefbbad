"""Build a tiny random snapshot of ROMA's architecture, for tests and for ``make demo-roma``.

The weights are random: the snapshot shows that the runner works and says nothing about ROMA. It
has the true modules, files and key names, in about 2 MB, and is the same for the same seed.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import AutoConfig, Qwen2_5OmniForConditionalGeneration

from hfd.errors import run_cli

HIDDEN = 64
BYTES = 256
SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|AUDIO|>",
    "<|audio_bos|>",
    "<|audio_eos|>",
    "<|vision_bos|>",
    "<|vision_eos|>",
    "<|vision_pad|>",
    "<|IMAGE|>",
    "<|VIDEO|>",
)
IDS = {name: BYTES + number for number, name in enumerate(SPECIAL)}
SPEECH_IDS = {"pad": 300, "start": 301, "end": 302, "voice": 303}
VOCABULARY = 320
CODES = {"vocabulary": 80, "pad": 64, "bos": 65, "eos": 66, "mask": 68}
ROPE = {
    "rope_theta": 1_000_000.0,
    "rope_scaling": {"type": "default", "rope_type": "default", "mrope_section": [2, 3, 3]},
}


def config() -> dict[str, Any]:
    """config.json of the tiny snapshot, in the layout of the published one."""
    media = {
        "audio_token_index": IDS["<|AUDIO|>"],
        "image_token_index": IDS["<|IMAGE|>"],
        "video_token_index": IDS["<|VIDEO|>"],
        "audio_start_token_id": IDS["<|audio_bos|>"],
        "audio_end_token_id": IDS["<|audio_eos|>"],
        "vision_start_token_id": IDS["<|vision_bos|>"],
        "vision_end_token_id": IDS["<|vision_eos|>"],
        "position_id_per_seconds": 25,
        "seconds_per_chunk": 2,
    }
    text = {
        "model_type": "qwen2_5_omni_text",
        "vocab_size": VOCABULARY,
        "hidden_size": HIDDEN,
        "intermediate_size": 128,
        "num_hidden_layers": 4,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 32_768,
        "rms_norm_eps": 1e-6,
        **ROPE,
    }
    vision = {
        "model_type": "qwen2_5_omni_vision_encoder",
        "depth": 2,
        "hidden_size": 32,
        "embed_dim": 32,
        "num_heads": 2,
        "intermediate_size": 64,
        "out_hidden_size": HIDDEN,
        "fullatt_block_indexes": [1],
    }
    audio = {
        "model_type": "qwen2_5_omni_audio_encoder",
        "d_model": 32,
        "encoder_layers": 2,
        "encoder_attention_heads": 2,
        "encoder_ffn_dim": 64,
        "num_mel_bins": 128,
        "output_dim": HIDDEN,
        "n_window": 100,
    }
    talker = {
        "model_type": "qwen2_5_omni_talker",
        **media,
        "vocab_size": CODES["vocabulary"],
        "embedding_size": HIDDEN,
        "hidden_size": 32,
        "intermediate_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "num_key_value_heads": 1,
        "head_dim": 16,
        "max_position_embeddings": 32_768,
        "tts_text_start_token_id": SPEECH_IDS["start"],
        "tts_text_end_token_id": SPEECH_IDS["end"],
        "tts_text_pad_token_id": SPEECH_IDS["pad"],
        "tts_codec_start_token_id": CODES["bos"],
        "tts_codec_end_token_id": CODES["eos"],
        "tts_codec_pad_token_id": CODES["pad"],
        "tts_codec_mask_token_id": CODES["mask"],
        **ROPE,
    }
    flow = {
        "model_type": "qwen2_5_omni_dit",
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 2,
        "head_dim": 16,
        "emb_dim": 16,
        "num_embeds": CODES["vocabulary"],
        "block_size": 24,
        "look_ahead_layers": [1],
        "look_backward_layers": [0, 2],
        "enc_dim": 16,
        "enc_emb_dim": 16,
        "enc_channels": [16, 16, 16, 16, 48],
        "enc_attention_channels": 16,
        "enc_res2net_scale": 2,
        "enc_se_channels": 16,
    }
    vocoder = {
        "model_type": "qwen2_5_omni_bigvgan",
        "upsample_initial_channel": 8,
        "resblock_kernel_sizes": [3],
        "resblock_dilation_sizes": [[1, 3, 5]],
        "upsample_rates": [5, 6, 8],
        "upsample_kernel_sizes": [11, 12, 16],
    }
    return {
        "model_type": "qwen2_5_omni",
        "architectures": ["Qwen2_5OmniModel"],
        "enable_audio_output": True,
        "torch_dtype": "float32",
        "thinker_config": {
            "model_type": "qwen2_5_omni_thinker",
            **media,
            "pad_token_id": IDS["<|endoftext|>"],
            "text_config": text,
            "vision_config": vision,
            "audio_config": audio,
        },
        "talker_config": talker,
        "token2wav_config": {
            "model_type": "qwen2_5_omni_token2wav",
            "dit_config": flow,
            "bigvgan_config": vocoder,
        },
    }


def preprocessor() -> dict[str, Any]:
    """preprocessor_config.json: what the log-mel extractor needs, as published."""
    return {
        "feature_extractor_type": "WhisperFeatureExtractor",
        "feature_size": 128,
        "sampling_rate": 16_000,
        "hop_length": 160,
        "n_fft": 400,
        "chunk_length": 300,
        "padding_value": 0.0,
        "padding_side": "right",
        "return_attention_mask": True,
        "dither": 0.0,
    }


def tokenizer(special: dict[str, int]) -> Tokenizer:
    """A byte-level tokenizer without merges: every byte is a token."""
    symbols = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {symbol: number for number, symbol in enumerate(symbols)} | special
    made = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(name, special=True, normalized=False) for name in special])
    return made


def write_tokenizer(folder: Path, special: dict[str, int]) -> None:
    """tokenizer.json and tokenizer_config.json."""
    tokenizer(special).save(str(folder / "tokenizer.json"))
    settings = {
        "tokenizer_class": "Qwen2TokenizerFast",
        "eos_token": "<|im_end|>",
        "pad_token": "<|endoftext|>",
        "model_max_length": 32_768,
        "clean_up_tokenization_spaces": False,
    }
    _write(folder / "tokenizer_config.json", settings)


def randomise(model: torch.nn.Module, generator: torch.Generator) -> None:
    """Weights large enough that states differ and the vocoder can be heard."""

    def fill(weight: torch.Tensor, deviation: float) -> None:
        weight.copy_(torch.randn(weight.shape, generator=generator) * deviation)

    for name, weight in model.named_parameters():
        if "conv_post" in name:
            fill(weight, 0.003)
        elif "bigvgan" in name and weight.ndim == 3:
            fill(weight, 0.35)
        elif "token2wav" in name and weight.ndim > 1:
            fill(weight, 0.1)
        elif weight.ndim > 1:
            fill(weight, 0.15)


def prefer_letters(head: torch.Tensor) -> None:
    """Make letters likelier than other bytes, so that the demo's text can be looked at."""
    symbols = sorted(pre_tokenizers.ByteLevel.alphabet())
    letters = [number for number, symbol in enumerate(symbols) if symbol.isascii()]
    quiet = torch.ones(head.shape[0], dtype=torch.bool)
    quiet[[*letters, IDS["<|im_end|>"]]] = False
    head[quiet] *= 0.1


def speak_head(generator: torch.Generator, layers: int = 4) -> dict[str, torch.Tensor]:
    """Tensors of both speak heads, under ROMA's names."""

    def draw(*shape: int) -> torch.Tensor:
        return torch.randn(shape, generator=generator)

    return {
        "thinker.gate_mixer.logits": draw(layers),
        "thinker.gate_head.weight": draw(1, HIDDEN),
        "thinker.gate_head.bias": draw(1),
        "thinker.gate_head_pro_fc1.weight": draw(HIDDEN // 4, HIDDEN),
        "thinker.gate_head_pro_fc1.bias": draw(HIDDEN // 4),
        "thinker.gate_head_pro_fc2.weight": draw(1, HIDDEN // 4),
        "thinker.gate_head_pro_fc2.bias": draw(1),
    }


def make_snapshot(folder: Path, seed: int = 0) -> None:
    """Write the snapshot into `folder`, which is made if it does not exist."""
    transformers.logging.set_verbosity_error()
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "config.json", config())
    _write(folder / "preprocessor_config.json", preprocessor())
    write_tokenizer(folder, IDS)
    generator = torch.Generator().manual_seed(seed)
    model = Qwen2_5OmniForConditionalGeneration(AutoConfig.from_pretrained(folder))
    with torch.no_grad():
        randomise(model, generator)
        prefer_letters(model.thinker.lm_head.weight)
    tensors = {key: value.contiguous() for key, value in model.state_dict().items()}
    save_file(tensors | speak_head(generator), folder / "model.safetensors", {"format": "pt"})
    voices = {
        name: {
            "cond": torch.randn(1, 16, generator=generator),
            "ref_mel": torch.randn(1, 120, 80, generator=generator),
            "bos_token": SPEECH_IDS["voice"],
        }
        for name in ("Chelsie", "Ethan")
    }
    torch.save(voices, folder / "spk_dict.pt")


def _write(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the snapshot goes")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random weights")
    options = parser.parse_args(argv)
    make_snapshot(options.folder, options.seed)
    print(f"{options.folder}: tiny ROMA snapshot with RANDOM weights (seed {options.seed})")
    return 0


if __name__ == "__main__":
    run_cli(main)
