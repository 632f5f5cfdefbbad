"""What the runner needs of the snapshot's own code, checked once after loading.

The code travels with the weights, so another snapshot may bring another. What is missing is said by
name; what a call does not take is not passed, unless a setting asks for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

TOKENS = (
    "<unit>",
    "</unit>",
    "<image>",
    "</image>",
    "<|listen|>",
    "<|speak|>",
    "<|tts_bos|>",
    "<|chunk_eos|>",
    "<|chunk_tts_eos|>",
    "<|turn_eos|>",
)
"""Tokens of the duplex grammar; without one, its id would silently be that of ``<unk>``."""
DUPLEX = (
    "current_turn_ended",
    "decoder",
    "model",
    "prepare",
    "processor",
    "streaming_generate",
    "streaming_prefill",
    "token2wav_initialized",
    "tokenizer",
    "total_ids",
    "tts_text_start_pos",
    "turn_eos_token_id",
    "_generate_waveform_from_tokens",
)
MEL_STATE = ("dynamic_log_norm", "dynamic_range_db", "log_floor_db")
"""How loudness is normalised: streaming changes it, and upstream never sets it back."""
PREPARE = ("prefix_system_prompt", "ref_audio", "prompt_wav_path")
PREFILL = ("audio_waveform", "frame_list", "max_slice_nums")
GENERATE = (
    "prompt_wav_path",
    "max_new_speak_tokens_per_chunk",
    "decode_mode",
    "temperature",
    "top_k",
    "top_p",
    "text_repetition_penalty",
    "text_repetition_window_size",
)


def code_problems(duplex: Any) -> list[str]:
    """What the loaded code lacks, one sentence each."""
    problems = [f"its duplex object has no {name}" for name in DUPLEX if not hasattr(duplex, name)]
    if problems:
        return problems
    mel = getattr(duplex.processor, "audio_processor", None)
    problems += [f"its audio processor has no {n}" for n in MEL_STATE if not hasattr(mel, n)]
    for holder, name in ((duplex.model, "reset_session"), (duplex.decoder, "get_cache_length")):
        if not hasattr(holder, name):
            problems.append(f"its {type(holder).__name__} has no {name}")
    for call, names in (("prepare", PREPARE), ("streaming_prefill", PREFILL)):
        problems += _lacking(getattr(duplex, call), names)
    problems += _lacking(duplex.streaming_generate, GENERATE)
    for token in TOKENS:
        number = duplex.tokenizer.convert_tokens_to_ids(token)
        if duplex.tokenizer.convert_ids_to_tokens(number) != token:
            problems.append(f"its tokenizer has no {token}")
    window = getattr(getattr(duplex.decoder, "_window_config", None), "sliding_window_mode", "off")
    if window != "off":
        problems.append(f"its window is {window!r}, which drops old seconds")
    return problems


def _lacking(call: Callable[..., Any], names: tuple[str, ...]) -> list[str]:
    return [f"its {call.__name__} takes no {name}" for name in names if not takes(call, name)]


def takes(call: Callable[..., Any], name: str) -> bool:
    """Whether `call` has a parameter of that name of its own."""
    return name in inspect.signature(call).parameters


def cache_length(cache: Any) -> int:
    """Positions in a cache of keys and values as upstream keeps it; 0 for none."""
    return 0 if cache is None else int(cache[0][0].shape[2])


def seconds_of(costs: Mapping[str, Any]) -> dict[str, float]:
    """Upstream's ``cost_<part>`` entries as ``<part>_s``."""
    return {
        f"{name.removeprefix('cost_')}_s": round(float(value), 6)
        for name, value in costs.items()
        if name.startswith("cost_")
    }
