"""One token through the kernels is one token through the plain layers (in triton's interpreter)."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

CODE = """
import sys; sys.path.insert(0, {path!r})
import torch
from transformers import {kind}Config, {kind}Model
from hfd.models.graphs.attention import causal_bias
from hfd.models.graphs.decoder import StaticCache, decode, signed
from hfd.models.graphs.single import decode_token

torch.set_num_threads(1)
torch.manual_seed(0)
config = {kind}Config(hidden_size=96, intermediate_size=224, num_hidden_layers=3, vocab_size=8,
                     num_attention_heads=6, num_key_value_heads=2, head_dim=16)
model = {kind}Model(config).eval()
with torch.no_grad():
    for weight in model.parameters():
        weight.normal_(0, 0.2)
    for filled in (0, 1, 70, 200):
        cache = StaticCache(model, 256)
        cache.block[..., :filled, :].normal_()
        before = cache.block.clone()
        state, start = torch.randn(1, 96), torch.tensor([filled])
        cos, sin = model.rotary_emb(state, torch.tensor([[filled]]))
        rotation = cos[0, 0], signed(sin)[0, 0]
        bias = causal_bias(start, 1, 256, 3, torch.float32)
        wide = tuple(part[None, None, None] for part in rotation)
        plain, kept = decode(model, state[None], wide, start[None], bias, cache, {{1, 3}})
        written = cache.block.clone()
        cache.block.copy_(before)
        ours, also = decode_token(model, state, rotation, start, cache, {{1, 3}})
        torch.testing.assert_close(ours, plain[0], rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(cache.block, written, rtol=1e-4, atol=1e-4)
        for number in (1, 3):
            torch.testing.assert_close(also[number], kept[number][0], rtol=1e-4, atol=1e-4)
print("equal")
"""


@pytest.mark.heavy
@pytest.mark.parametrize("kind", ["Qwen2", "Qwen3"])
@pytest.mark.skipif(find_spec("triton") is None, reason="CPU builds of torch come without triton")
def test_one_token_through_the_kernels_is_one_through_the_layers(kind):
    """Biases (Qwen2) and norms of query and key (Qwen3), in float32."""
    code = CODE.format(kind=kind, path=str(Path(__file__).parents[3] / "scripts"))
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={"TRITON_INTERPRET": "1", "PATH": "/usr/bin"},
        check=False,
    )
    assert done.stdout == "equal\n", done.stderr


COMPILE = """
import sys; sys.path.insert(0, {path!r})
import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from hfd.models.graphs import kernels

WHOLE, PLACE = dict(rows_out="i32", eps="fp32", capacity="i32", scaling="fp32"), dict(start="*i64")
SUMS = dict.fromkeys(("sums", "tops", "weights"), "*fp32")
CONSTANT = dict(size=768, padded=1024, has_bias=True, block_rows=4, block=64, stages=3, group=4,
                heads=32, shared=8, width=128, rows=16, splits=32)
for name in ("norm_linear", "norm_gated", "linear_added", "attend", "join_parts"):
    for kind in ("*bf16", "*fp32"):
        for has_norm in (True, False) if name == "attend" else (True,):
            kernel, constant = getattr(kernels, name), CONSTANT | {{"has_norm": has_norm}}
            types = {{n: "constexpr" if n in constant else (WHOLE | PLACE | SUMS).get(n, kind)
                     for n in kernel.arg_names}}
            constant = {{n: v for n, v in constant.items() if n in types}}
            source = ASTSource(fn=kernel, signature=types, constexprs=constant)
            triton.compile(source, target=GPUTarget("cuda", 90, 32), options={{"num_warps": 4}})
print("compiled")
"""


@pytest.mark.heavy
@pytest.mark.skipif(find_spec("triton") is None, reason="CPU builds of torch come without triton")
def test_the_kernels_compile_for_a_gpu_that_is_not_there(tmp_path):
    """The interpreter takes what the compiler refuses, such as a name of two types."""
    code = COMPILE.format(path=str(Path(__file__).parents[3] / "scripts"))
    environment = {"TRITON_CACHE_DIR": str(tmp_path), "PATH": "/usr/bin"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=False
    )
    assert done.stdout == "compiled\n", done.stderr
