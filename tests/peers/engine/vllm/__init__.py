"""What stands in for vLLM where the authors' DuplexOmni servers run without a GPU.

The engine and only the engine: a thinker that writes what ``ENGINE_SCRIPT`` says and keeps a
record of every prompt (``ENGINE_LOG``), a talker that makes six codec steps and an end, an MTP
engine of random codes. HTTP, sessions, prompts, tensors, blobs, history and Code2Wav are the
authors' and Hugging Face's own. All modules of the package that are imported are made here.

ENGINE_SCRIPT is a JSON file: ``replies`` (one text a slice, the last goes on), ``think_s``,
``dead_at`` (the call of the thinker from which on the engine is dead, until it is started again),
``empty`` (slices in which the talker ends too early).
"""

import asyncio
import base64
import hashlib
import io
import json
import os
import sys
import types
from pathlib import Path

VLLM_MSGPACK_ZERO_COPY_THRESHOLD = int(os.environ.get("VLLM_MSGPACK_ZERO_COPY_THRESHOLD", "256"))
CODEC_BOS, CODEC_EOS = 3, 4
HIDDEN = 16
STEPS = 6


def _script():
    path = os.environ.get("ENGINE_SCRIPT")
    return json.loads(Path(path).read_text()) if path else {}


class EngineDeadError(Exception):
    """As vLLM's own."""


class SamplingParams:
    """Keeps what it is given."""

    def __init__(self, **given):
        self.__dict__.update(given)


class AsyncEngineArgs(SamplingParams):
    """Keeps what it is given."""


class _Struct:
    """Attributes, no behaviour."""

    def __init__(self, **values):
        self.__dict__.update(values)


class AsyncLLM:
    """The thinker's engine."""

    @classmethod
    def from_engine_args(cls, args):
        """As vLLM's own."""
        engine = cls()
        engine.args, engine.calls, engine.script = args, 0, _script()
        return engine

    async def generate(self, prompt, sampling_params, request_id):
        """One output: the script's reply for this slice."""
        self.calls += 1
        died = Path(os.environ.get("ENGINE_SCRIPT", "") + ".died")
        if self.calls >= self.script.get("dead_at", 10**9) and not died.exists():
            self.dead = True
            died.touch()
        if getattr(self, "dead", False):
            raise EngineDeadError("EngineCore encountered an issue. See stack trace (above).")
        media = prompt.get("multi_modal_data", {})
        index = len(media["audio"]) - 1
        sizes = [_image_size(url) for url in media.get("image", [])]
        tokens = len(prompt["prompt"]) // 4 + sum(_image_tokens(*size) for size in sizes)
        if tokens > self.args.max_model_len:
            raise ValueError(f"prompt of {tokens} tokens is longer than {self.args.max_model_len}")
        _record(index, prompt, sampling_params, media, sizes)
        await asyncio.sleep(self.script.get("think_s", 0.0))
        replies = self.script.get("replies", ["{'tts': ''}"])
        text = replies[min(index, len(replies) - 1)]
        ids = list(range(100, 100 + max(2, len(text) // 2)))
        completion = _Struct(text=text, token_ids=ids, finish_reason="stop")
        yield _Struct(outputs=[completion], prompt_token_ids=list(range(tokens)))

    async def collective_rpc(self, name, args):
        """The reply's tensors, one row less than tokens; the first number is the slice."""
        import torch

        _, ids = args
        rows = torch.zeros(len(ids) - 1, HIDDEN, dtype=torch.float16)
        tensors = {"top_hidden_state": rows, "text_embedding": rows + 1}
        return [{**tensors, "aligned_token_ids": ids[:-1]}, None]

    def shutdown(self):
        """As vLLM's own."""


def _image_size(url):
    from PIL import Image

    return Image.open(io.BytesIO(base64.b64decode(url.partition(",")[2]))).size


def _image_tokens(width, height):
    return round(width / 32) * round(height / 32)


def _record(index, prompt, sampling, media, sizes):
    if not (log := os.environ.get("ENGINE_LOG")):
        return
    samples, rate = media["audio"][-1]
    images = [
        hashlib.sha256(url.partition(",")[2].encode()).hexdigest() for url in media.get("image", [])
    ]
    line = {
        "index": index,
        "session": prompt.get("cache_salt"),
        "prompt": prompt["prompt"],
        "sampling": sampling.__dict__,
        "audio": [len(samples), rate],
        "sizes": sizes,
        "images": images,
    }
    with Path(log).open("a") as file:
        file.write(json.dumps(line) + "\n")


class LLM:
    """The talker's engine and the MTP engine."""

    def __init__(self, **given):
        self.slices, self.empty = 0, set(_script().get("empty", []))

    def generate(self, prompts, sampling_params, use_tqdm=False):
        """One codec token: six steps, then the end; a slice that is to be empty ends after three.

        The first slice of the process is the warm-up turn: number -1.
        """
        ids = prompts[0]["prompt_token_ids"]
        step = ids[::-1].index(CODEC_BOS)
        if step == 0:
            self.slices += 1
        last = 3 if self.slices - 2 in self.empty else STEPS
        return [_Struct(outputs=[_Struct(token_ids=[CODEC_EOS if step >= last else 10 + step])])]

    def apply_model(self, function):
        """What the authors' callbacks would do inside the engine."""
        import torch

        name = getattr(function, "func", function).__name__
        if name == "vllm_apply_projection_rpc":
            return [torch.zeros(function.keywords["emb"].shape[0], 32)]
        if name == "vllm_read_last_sample_hidden_cpu":
            return [torch.zeros(1, 32)]
        if name == "vllm_mtp_run_rpc":
            return [[torch.randint(0, 16, (1, 4, 1)), torch.zeros(1, 32)]]
        raise RuntimeError(name)


def _weights(files, use_tqdm_on_load=False):
    from safetensors import safe_open

    for file in files:
        with safe_open(file, framework="pt") as tensors:
            for key in tensors.keys():  # noqa: SIM118  it is no mapping
                yield key, tensors.get_tensor(key)


class _Processor:
    """ChatML, as the model's own template writes it."""

    def apply_chat_template(self, messages, tokenize=False, add_generation_prompt=True):
        said = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages)
        return said + "<|im_start|>assistant\n"


def _module(name, **content):
    module = types.ModuleType(f"vllm.{name}")
    module.__dict__.update(content)
    module.__path__ = []
    sys.modules[module.__name__] = module
    return module


def _nothing(*_, **__):
    return None


def _logger(name):
    import logging

    return logging.getLogger(name)


envs = _module("envs", VLLM_MSGPACK_ZERO_COPY_THRESHOLD=VLLM_MSGPACK_ZERO_COPY_THRESHOLD)
_empty = {
    name: type(name, (), {})
    for name in (
        "AsyncModelRunnerOutput",
        "ModelRunnerOutput",
        "Worker",
        "AsyncGPUModelRunnerOutput",
        "GPUModelRunner",
        "BatchDescriptor",
        "CUDAGraphMode",
    )
}
for _name, _content in {
    "engine": {},
    "engine.arg_utils": {"AsyncEngineArgs": AsyncEngineArgs},
    "sampling_params": {"SamplingParams": SamplingParams},
    "logger": {"init_logger": _logger},
    "config": {**_empty, "get_current_vllm_config_or_none": _nothing},
    "forward_context": {
        **_empty,
        "create_forward_context": _nothing,
        "override_forward_context": _nothing,
    },
    "entrypoints": {},
    "entrypoints.llm": {"LLM": LLM},
    "v1": {},
    "v1.engine": {},
    "v1.engine.async_llm": {"AsyncLLM": AsyncLLM},
    "v1.outputs": _empty,
    "v1.worker": {},
    "v1.worker.gpu_worker": _empty,
    "v1.worker.gpu_model_runner": _empty,
    "model_executor": {},
    "model_executor.model_loader": {},
    "model_executor.model_loader.weight_utils": {"safetensors_weights_iterator": _weights},
}.items():
    _module(_name, **_content)


def _replace_processor():
    from transformers import AutoProcessor

    AutoProcessor.from_pretrained = classmethod(lambda cls, *_, **__: _Processor())


_replace_processor()
