"""Whether the weights and the context fit the GPUs, told from the files before anything starts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hfd.errors import HfdError
from hfd.files import read_json
from hfd.models.duplexomni.context import Limits
from hfd.models.duplexomni.settings import StackLaunch
from hfd.models.duplexomni.weights import tensor_bytes

GIB = 2**30
WORKSPACE_GIB = 4.0
"""Activations, CUDA context and graphs of a main engine on each GPU."""
MTP_WORKSPACE_GIB = 2.0
MOST_SHARE = 0.95
"""More of a GPU's memory than this cannot be promised to engines."""


@dataclass(frozen=True)
class Checkpoint:
    """The part of a weights folder that one server loads.

    Attributes:
        weight_bytes: size of its tensors.
        kv_bytes_per_token: size of one token's keys and values, all layers.
        kv_heads: into how many parts keys and values can be split.
        most_tokens: longest context the model has positions for.
    """

    weight_bytes: int
    kv_bytes_per_token: int
    kv_heads: int
    most_tokens: int

    def kv_bytes(self, tokens: int, gpus: int) -> float:
        """Keys and values of one session on each of `gpus` GPUs."""
        return tokens * self.kv_bytes_per_token / min(gpus, self.kv_heads)


def read_checkpoint(folder: Path, part: str) -> Checkpoint:
    """Read sizes from ``config.json`` and the headers of the safetensors files.

    Args:
        folder: a downloaded checkpoint of the whole model.
        part: ``thinker`` or ``talker``.

    Raises:
        HfdError: the folder, its config or a file is missing, cut short, or without that part.
    """
    config = read_json(folder / "config.json")
    try:
        text = config[f"{part}_config"]["text_config"]
        heads, layers = int(text["num_key_value_heads"]), int(text["num_hidden_layers"])
        head_dim = int(text.get("head_dim") or text["hidden_size"] // text["num_attention_heads"])
        most_tokens = int(text["max_position_embeddings"])
    except (KeyError, TypeError, ValueError) as error:
        raise HfdError(
            f"describes no {part} ({error!r} is missing or wrong)",
            file=folder / "config.json",
            remedy="Name the folder of a complete DuplexOmni checkpoint",
        ) from error
    return Checkpoint(
        weight_bytes=tensor_bytes(folder, f"{part}."),
        kv_bytes_per_token=2 * layers * heads * head_dim * 2,
        kv_heads=heads,
        most_tokens=most_tokens,
    )


def check_memory(stack: StackLaunch, gpus: int, gpu_gib: float) -> dict[str, Any]:
    """Refuse a stack that cannot fit, with the arithmetic.

    Args:
        stack: how it would be started.
        gpus: GPUs the job was given.
        gpu_gib: memory of the smallest of them.

    Returns:
        GiB needed and available on each kind of GPU, for the log.

    Raises:
        HfdError: too few GPUs, too little memory, or more context than the model has positions.
    """
    if gpus < stack.thinker_tp + stack.talker_tp:
        raise HfdError(
            f"thinker_tp {stack.thinker_tp} + talker_tp {stack.talker_tp} need "
            f"{stack.thinker_tp + stack.talker_tp} GPUs, the job was given {gpus}",
            field="settings.stack",
            remedy="Lower thinker_tp and talker_tp (1 + 1 at least), or ask for more GPUs",
        )
    thinker = read_checkpoint(Path(stack.thinker_weights), "thinker")
    talker = read_checkpoint(Path(stack.talker_weights), "talker")
    code2wav = tensor_bytes(Path(stack.talker_weights), "code2wav.")
    if stack.max_model_len > thinker.most_tokens:
        raise HfdError(
            f"{stack.max_model_len} tokens are more than the model's {thinker.most_tokens} "
            "positions",
            field="settings.stack.max_model_len",
            remedy=f"Lower it to {thinker.most_tokens}; for longer files lower picture_long_side",
        )
    plan = {
        "a thinker GPU": _room(
            thinker,
            stack.max_model_len,
            stack.thinker_tp,
            WORKSPACE_GIB,
            stack.thinker_gpu_share * gpu_gib,
        ),
        "a talker GPU": _room(
            talker,
            Limits(0).talker_rows,
            stack.talker_tp,
            WORKSPACE_GIB,
            stack.talker_gpu_share * gpu_gib,
        ),
        "the MTP engine on the last GPU": _room(
            talker, Limits(0).talker_rows, 1, MTP_WORKSPACE_GIB, stack.mtp_gpu_share * gpu_gib
        ),
        "Code2Wav beside the talker": {
            "weights": code2wav / GIB,
            "context": 0.0,
            "workspace": 1.0,
            "available": _beside_talker(stack) * gpu_gib,
        },
    }
    for place, room in plan.items():
        needed = room["weights"] + room["context"] + room["workspace"]
        if needed > room["available"]:
            raise HfdError(
                f"{place} needs {needed:.1f} GiB (weights {room['weights']:.1f} + context "
                f"{room['context']:.1f} + workspace {room['workspace']:.1f}), its share of "
                f"{gpu_gib:.0f} GiB is {room['available']:.1f}",
                field="settings.stack",
                remedy="Use more GPUs (thinker_tp, talker_tp) or larger ones, or move the shares; "
                "quantising or cropping is not allowed",
            )
    return plan


def _room(
    part: Checkpoint, tokens: int, gpus: int, workspace: float, available: float
) -> dict[str, float]:
    return {
        "weights": part.weight_bytes / gpus / GIB,
        "context": part.kv_bytes(tokens, gpus) / GIB,
        "workspace": workspace,
        "available": available,
    }


def _beside_talker(stack: StackLaunch) -> float:
    """Share of the talker's first GPU that no engine takes; with one GPU MTP is on it too."""
    taken = stack.talker_gpu_share + (stack.mtp_gpu_share if stack.talker_tp == 1 else 0.0)
    return MOST_SHARE - taken
