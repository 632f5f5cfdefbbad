"""A folder that looks like the downloaded checkpoint: true headers, holes instead of numbers."""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from typing import Any

GIB = 2**30
SIZES = {"thinker": 59.0, "talker": 5.8, "code2wav": 0.4}
"""GiB of bf16, about as in the public base model."""


def reference_stack(weights: Path) -> dict[str, Any]:
    """Settings of a stack of the reference servers (serving_core/), which read those weights."""
    return {
        "server_root": str(Path(__file__).parent),
        "python": sys.executable,
        "thinker_weights": str(weights),
        "talker_weights": str(weights),
        "thinker_tp": 1,
        "talker_tp": 1,
        "gpu_memory_gib": 141,
    }


def fake_weights(folder: Path, dtype: str = "BF16", **gib: float) -> Path:
    """Make the folder; sizes of its parts in GiB may be changed."""
    folder.mkdir()
    text = {
        "num_hidden_layers": 48,
        "num_key_value_heads": 4,
        "num_attention_heads": 32,
        "hidden_size": 2048,
        "head_dim": 128,
        "max_position_embeddings": 65536,
    }
    talker = {**text, "num_hidden_layers": 20, "num_key_value_heads": 2}
    config = {"thinker_config": {"text_config": text}, "talker_config": {"text_config": talker}}
    (folder / "config.json").write_text(json.dumps(config))
    sizes = {part: int(size * GIB) for part, size in (SIZES | gib).items()}
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for part, size in sizes.items():
        header[f"{part}.weight"] = {
            "dtype": dtype,
            "shape": [size // 2],
            "data_offsets": [end, end + size],
        }
        end += size
    text = json.dumps(header).encode()
    with (folder / "model-00001-of-00001.safetensors").open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + end)
    return folder
