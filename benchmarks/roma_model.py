"""ROMA in full size with random weights, for measurements that need no checkpoint."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import torch
from transformers import (
    AutoTokenizer,
    Qwen2_5OmniConfig,
    Qwen2_5OmniForConditionalGeneration,
    WhisperFeatureExtractor,
)

from hfd.models.roma.checkpoint import Parts, Speaker, dtype_counts
from hfd.models.roma.model import Roma
from hfd.models.roma.speak_head import LAYERS, SpeakHead, head_keys
from make_roma_tiny import SPECIAL, write_tokenizer

IDS = dict(zip(SPECIAL, [*range(151_643, 151_649), *range(151_652, 151_657)], strict=True))
ROPE = {"type": "default", "rope_type": "default", "mrope_section": [16, 24, 24]}


def full_config() -> Qwen2_5OmniConfig:
    """Shapes of Qwen2.5-Omni-7B."""
    text = {
        "vocab_size": 152_064,
        "hidden_size": 3584,
        "intermediate_size": 18_944,
        "num_hidden_layers": 28,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "rope_theta": 1_000_000.0,
        "rope_scaling": ROPE,
    }
    vision = {
        "depth": 32,
        "hidden_size": 1280,
        "intermediate_size": 3420,
        "num_heads": 16,
        "out_hidden_size": 3584,
        "fullatt_block_indexes": [7, 15, 23, 31],
    }
    audio = {
        "d_model": 1280,
        "encoder_layers": 32,
        "encoder_attention_heads": 20,
        "encoder_ffn_dim": 5120,
        "num_mel_bins": 128,
        "output_dim": 3584,
        "n_window": 100,
    }
    talker = {
        "vocab_size": 8448,
        "embedding_size": 3584,
        "hidden_size": 896,
        "intermediate_size": 18_944,
        "num_hidden_layers": 24,
        "num_attention_heads": 12,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "rope_theta": 1_000_000.0,
        "rope_scaling": ROPE,
    }
    media = {"vision_start_token_id": 151_652, "vision_end_token_id": 151_653}
    return Qwen2_5OmniConfig(
        thinker_config={
            "text_config": text,
            "vision_config": vision,
            "audio_config": audio,
            "audio_start_token_id": 151_647,
            "audio_end_token_id": 151_648,
            **media,
        },
        talker_config=talker,
        token2wav_config={"dit_config": {"block_size": 24}, "bigvgan_config": {}},
    )


@cache  # a card has room for one
@torch.no_grad()
def random_parts(device: torch.device, seed: int = 0) -> Parts:
    """A full-size model whose weights keep the size of what flows through them."""
    torch.manual_seed(seed)
    if device.type == "cuda":
        torch.cuda.set_device(device)  # the vocoder's filters are made on the current one
    with torch.device(device):
        model = Qwen2_5OmniForConditionalGeneration(full_config()).eval().requires_grad_(False)
    for name, weight in model.named_parameters():
        if "token2wav" not in name:
            weight.data = weight.data.to(torch.bfloat16)  # buffers stay float32, as when loaded
        if "embed_tokens" in name:
            weight.normal_(0, 1)
        elif "conv_post" in name:
            weight.normal_(0, 0.002)  # keeps the samples from clipping
        elif weight.ndim > 1:
            weight.normal_(0, weight[0].numel() ** -0.5)
    if device.type == "cuda":
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    hidden = model.config.thinker_config.text_config.hidden_size
    shapes = ((4,), (hidden // 4, hidden), (hidden // 4,), (1, hidden // 4), (1,))
    head = {
        key: torch.randn(shape) * 0.02 for key, shape in zip(head_keys("mlp"), shapes, strict=True)
    }
    with tempfile.TemporaryDirectory() as folder:
        write_tokenizer(Path(folder), IDS)
        tokenizer = AutoTokenizer.from_pretrained(folder)
    return Parts(
        model=model,
        tokenizer=tokenizer,
        mel=WhisperFeatureExtractor(feature_size=128, return_attention_mask=True),
        head=SpeakHead.from_tensors("mlp", head, LAYERS, str(device)),
        speaker=Speaker(
            151_872,
            torch.randn(1, 192, device=device),
            torch.randn(1, 300, 80, device=device),
        ),
        device=device,
        weights=f"random-{seed}",
        dtypes=dtype_counts(model),
        facts={"weights_basis": "random"},
    )


class GivenRoma(Roma):
    """The real runner on parts that are there already."""

    def __init__(self, settings: Mapping[str, Any], parts: Parts) -> None:
        super().__init__(settings)
        self._given = parts

    def load_parts(self) -> Parts:
        return self._given


class RandomRoma(Roma):
    """The real runner in full size with random weights, as the worker makes it."""

    def load_parts(self) -> Parts:
        return random_parts(torch.device("cuda:0"))


MODEL = RandomRoma
