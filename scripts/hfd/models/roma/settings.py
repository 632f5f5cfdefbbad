"""Settings of the ROMA runner, checked before anything is loaded (no torch here)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from hfd.errors import HfdError

CHOICES = {
    "speak_head": ("mlp", "linear"),
    "continuation": ("always", "ask", "stop"),
    "while_speaking": ("hold", "queue"),
    "speech": ("stream", "whole_reply"),
    "dtype": ("auto", "bfloat16", "float32"),
    "acceleration": ("auto", "graphs", "eager"),
}
"""Settings with a closed list of values; docs/roma.md says what each value does."""


@dataclass(frozen=True)
class Settings:
    """All settings with their defaults; docs/roma.md names the source of each default.

    Attributes:
        model_path: local snapshot folder, or a hub id such as ``EurekaTian/ROMA``.
        revision: 40-digit commit of the hub id; required for a hub id, forbidden for a folder.
        device: torch device, or ``auto`` (the first GPU, else the CPU).
        dtype: of thinker and talker; ``auto`` is bfloat16 on a GPU and float32 on the CPU.
            The vocoder always runs in float32.
        system_prompt: text of the system turn, or None for ROMA's ``streaming_mix`` prompt.
        speaker: name in ``spk_dict.pt``.
        speak_head: which head of the checkpoint decides.
        threshold: the head fires when its probability is above this.
        refractory_s: seconds of media after an answer's last piece in which it cannot fire.
        continuation: what follows a piece that was cut at `text_tokens_per_s`: ``always`` goes on
            in the next second, ``ask`` goes on if the head fires, ``stop`` ends the answer.
        while_speaking: what a firing head does while earlier speech still plays: ``hold`` ignores
            it, ``queue`` starts an answer whose speech waits its turn.
        text_tokens_per_s: longest piece of text per second of stream.
        tail_tokens: longest text after the file's last second, where no unit follows.
        speech: ``stream`` vocodes in chunks, ``whole_reply`` each piece in one exact call.
        lead_s: seconds of speech generated ahead of what the stream needs.
        max_codes: longest speech of one piece, in codes (50 a second).
        temperature, top_k, top_p, repetition_penalty: sampling of codes.
        num_steps, guidance: of the flow-matching solver that makes mel frames.
        acceleration: ``graphs``, ``eager``, or ``auto`` (graphs where a GPU can).
        tf32: whether float32 matrix products on a GPU may use TF32.
        max_media_s: longest file the static caches are made for; at most what positions allow.
        min_free_gpu_gb: free GPU memory (10^9 bytes) below which loading is refused.
    """

    model_path: str
    revision: str | None = None
    device: str = "auto"
    dtype: str = "auto"
    system_prompt: str | None = None
    speaker: str = "Chelsie"
    speak_head: str = "mlp"
    threshold: float = 0.975
    refractory_s: float = 0.0
    continuation: str = "always"
    while_speaking: str = "hold"
    text_tokens_per_s: int = 25
    tail_tokens: int = 256
    speech: str = "stream"
    lead_s: float = 1.0
    max_codes: int = 4096
    temperature: float = 0.9
    top_k: int = 40
    top_p: float = 0.8
    repetition_penalty: float = 1.05
    num_steps: int = 10
    guidance: float = 0.5
    acceleration: str = "auto"
    tf32: bool = True
    max_media_s: float = 600.0
    min_free_gpu_gb: float = 40.0


RANGES = {
    "threshold": (0.0, 1.0),
    "refractory_s": (0.0, 3600.0),
    "text_tokens_per_s": (1, 100),
    "tail_tokens": (0, 8192),
    "lead_s": (0.0, 60.0),
    "max_codes": (1, 16384),
    "temperature": (0.0, 10.0),
    "top_k": (1, 8448),
    "top_p": (0.0, 1.0),
    "repetition_penalty": (0.1, 10.0),
    "num_steps": (2, 100),
    "guidance": (0.0, 10.0),
    "max_media_s": (1.0, 1200.0),
    "min_free_gpu_gb": (0.0, 1000.0),
}
"""Smallest and largest value. 1200 s is what 32 768 positions hold (27 a second, and replies)."""


def parse_settings(given: Mapping[str, Any]) -> Settings:
    """Check `given` and fill in the defaults.

    Raises:
        HfdError: unknown key, wrong type, value outside its list or range, or no model_path.
    """
    known = {field.name: field.type for field in fields(Settings)}
    for key in given:
        if key not in known:
            raise _wrong(key, "is no setting of roma", f"Known settings: {', '.join(known)}")
    if not given.get("model_path"):
        raise _wrong("model_path", "is missing", "Give a snapshot folder or a hub id")
    for key, value in given.items():
        _check(key, value, known[key])
    settings = Settings(**given)
    hub_pin = settings.revision
    if hub_pin is not None and not (len(hub_pin) == 40 and set(hub_pin) <= set("0123456789abcdef")):
        raise _wrong("revision", f"is {hub_pin!r}, not a commit", "Give the 40-digit commit hash")
    return settings


def _check(key: str, value: Any, kind: str) -> None:
    if value is None and "None" in kind:
        return
    if key in CHOICES and value not in CHOICES[key]:
        raise _wrong(key, f"is {value!r}", f"Use one of {', '.join(CHOICES[key])}")
    types = {"str": str, "bool": bool, "int": int, "float": (int, float)}[kind.split(" ")[0]]
    if not isinstance(value, types) or (isinstance(value, bool) and types is not bool):
        raise _wrong(key, f"is {value!r}, not of type {kind}", "Correct its type")
    if key in RANGES:
        low, high = RANGES[key]
        if not low <= value <= high:
            raise _wrong(key, f"is {value!r}", f"Give a number from {low} to {high}")


def _wrong(key: str, problem: str, remedy: str) -> HfdError:
    return HfdError(problem, field=f"settings.{key}", remedy=remedy)
