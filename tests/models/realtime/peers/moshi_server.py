"""Moshi's own server on a CPU with tiny random weights of the true architecture.

    python moshi_server.py PORT FOLDER

The module ``moshi.server`` of the package ``moshi==0.2.13`` runs as it is; only the sizes in its
tables are made small before anything is built. Random weights: what it says means nothing.
"""

from __future__ import annotations

import json
import os
import runpy
import sys
from pathlib import Path

os.environ.setdefault("NO_TORCH_COMPILE", "1")
os.environ.setdefault("NO_CUDA_GRAPH", "1")

import sentencepiece
import torch
from moshi.models import loaders
from safetensors.torch import save_file

torch.set_num_threads(1)
torch.cuda.synchronize = lambda *args: None  # the server calls it on every device

PIECES = 400
WORDS = ("hello", "there", "how", "are", "you", "你好", "we", "hear", "a", "voice", "goes", "on")


def shrink():
    """The smallest sizes that keep every part."""
    loaders._seanet_kwargs.update(dimension=64, n_filters=4)
    loaders._quantizer_kwargs.update(dimension=32, input_dimension=64, output_dimension=64)
    loaders._transformer_kwargs.update(
        d_model=64,
        num_heads=2,
        num_layers=1,
        dim_feedforward=64,
        input_dimension=64,
        output_dimensions=[64],
    )
    return {
        **loaders._lm_kwargs,
        "dim": 64,
        "num_heads": 2,
        "num_layers": 2,
        "hidden_scale": 2,
        "context": 500,
        "depformer_dim": 32,
        "depformer_dim_feedforward": 64,
        "depformer_num_heads": 2,
        "depformer_num_layers": 1,
    }


def train_tokenizer(folder):
    """A tokenizer with byte pieces; gives the number of its pieces."""
    corpus = folder / "words.txt"
    corpus.write_text("\n".join(" ".join(WORDS[n:] + WORDS[:n]) for n in range(len(WORDS))))
    sentencepiece.SentencePieceTrainer.train(
        input=str(corpus),
        model_prefix=str(folder / "tokenizer"),
        vocab_size=PIECES,
        byte_fallback=True,
        character_coverage=1.0,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return sentencepiece.SentencePieceProcessor(str(folder / "tokenizer.model")).vocab_size()


def save(folder, sizes):
    """Random weights, a tokenizer and the configuration, as a download would have them."""
    torch.manual_seed(1)
    sizes["text_card"] = train_tokenizer(folder)
    mimi = loaders.get_mimi(None, device="cpu", num_codebooks=8)
    save_file(
        {k: v.contiguous() for k, v in mimi.state_dict().items()}, folder / "mimi.safetensors"
    )
    lm = loaders.get_moshi_lm(None, lm_kwargs=sizes, device="cpu", dtype=torch.bfloat16)
    weights = {}
    for name, value in lm.state_dict().items():
        noise = torch.randn(value.shape, dtype=torch.float32) * 0.3
        weights[name] = noise.to(value.dtype) if value.is_floating_point() else value.clone()
    save_file(weights, folder / "moshi.safetensors")
    (folder / "config.json").write_text(json.dumps(sizes))


def main():
    port, folder = sys.argv[1], Path(sys.argv[2])
    sizes = shrink()
    if not (folder / "config.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        save(folder, sizes)
    sys.argv[1:] = [
        *("--host", "127.0.0.1", "--port", port, "--device", "cpu", "--static", "none"),
        *("--config-path", str(folder / "config.json")),
        *("--moshi-weight", str(folder / "moshi.safetensors")),
        *("--mimi-weight", str(folder / "mimi.safetensors")),
        *("--tokenizer", str(folder / "tokenizer.model")),
    ]
    runpy.run_module("moshi.server", run_name="__main__")


if __name__ == "__main__":
    main()
