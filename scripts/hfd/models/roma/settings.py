"""Settings of the ROMA runner, checked before anything is loaded."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from hfd.models.settings import Range, Share, make_settings, wrong_setting


@dataclass(frozen=True)
class Settings:
    """All settings with their defaults; docs/roma.md names the source of each default.

    Attributes:
        model_path: local snapshot folder, or a hub id such as ``EurekaTian/ROMA``.
        revision: 40-digit commit of the hub id; required for a hub id, forbidden for a folder.
        device: ``cuda:N``, ``cpu``, or ``auto``: the first GPU, and an error where there is none.
        dtype: of thinker and talker; ``auto`` is bfloat16 on a GPU and float32 on the CPU.
            The vocoder always runs in float32.
        system_prompt: text of the system turn, or None for ROMA's ``streaming_mix`` prompt.
        speaker: name in ``spk_dict.pt``.
        speak_head: which head of the checkpoint decides.
        threshold: the head fires when its probability is above this.
        refractory_s: seconds of media after an answer's last piece in which it cannot fire.
        continuation: what follows a piece that was cut at `text_tokens_per_s`: ``always`` goes on
            in the next second, ``ask`` goes on if the head fires, ``stop`` ends the answer.
        while_speaking: what a head that fires anew does while an answer is in hand: ``interrupt``
            drops the rest of that answer, text and sound, and answers; ``queue`` lets the answer
            in hand end, and a firing after its text begins an answer whose speech waits its turn;
            ``hold`` keeps the firing until the speech has ended.
        rearm_below: a head fires anew if its probability has been at or below this since the
            answer in hand began; None is the threshold itself, 1 lets every firing count.
        text_tokens_per_s: longest piece of text per second of stream.
        tail_tokens: longest text after the file's last second, where no unit follows.
        speech: ``stream`` vocodes in chunks, ``whole_reply`` each piece in one exact call.
        lead_s: seconds of speech generated ahead of what the stream needs.
        max_codes: longest speech of one piece, in codes (50 a second).
        temperature, top_k, top_p, repetition_penalty: sampling of codes.
        num_steps, guidance: of the flow-matching solver that makes mel frames.
        acceleration: ``graphs``, ``eager``, or ``auto``: graphs where torch can capture them.
        tf32: whether float32 matrix products on a GPU may use TF32.
        max_media_s: longest file the static caches are made for; at most the 1200 s that 32 768
            positions hold (27 a second, and replies).
        min_free_gpu_gb: free GPU memory (10^9 bytes) below which loading is refused; None is what
            the weights, the caches for `max_media_s` and the graphs take.
    """

    model_path: str
    revision: str | None = None
    device: str = "auto"
    dtype: Literal["auto", "bfloat16", "float32"] = "auto"
    system_prompt: str | None = None
    speaker: str = "Chelsie"
    speak_head: Literal["mlp", "linear"] = "mlp"
    threshold: Share = 0.975
    refractory_s: Annotated[float, Range(0, 3600)] = 0.0
    continuation: Literal["always", "ask", "stop"] = "always"
    while_speaking: Literal["interrupt", "queue", "hold"] = "interrupt"
    rearm_below: Share | None = None
    text_tokens_per_s: Annotated[int, Range(1, 100)] = 25
    tail_tokens: Annotated[int, Range(0, 8192)] = 256
    speech: Literal["stream", "whole_reply"] = "stream"
    lead_s: Annotated[float, Range(0, 60)] = 1.0
    max_codes: Annotated[int, Range(1, 16384)] = 4096
    temperature: Annotated[float, Range(0, 10)] = 0.9
    top_k: Annotated[int, Range(1, 8448)] = 40
    top_p: Share = 0.8
    repetition_penalty: Annotated[float, Range(0.1, 10)] = 1.05
    num_steps: Annotated[int, Range(2, 100)] = 10
    guidance: Annotated[float, Range(0, 10)] = 0.5
    acceleration: Literal["auto", "graphs", "eager"] = "auto"
    tf32: bool = True
    max_media_s: Annotated[float, Range(1, 1200)] = 600.0
    min_free_gpu_gb: Annotated[float, Range(0, 1000)] | None = None


def parse_settings(given: Mapping[str, Any]) -> Settings:
    """Check `given` and fill in the defaults.

    Raises:
        HfdError: unknown key, wrong type, value outside its list or range, or no model_path.
    """
    settings = make_settings(Settings, given)
    if not settings.model_path:
        raise wrong_setting("settings.model_path", "", "Give a snapshot folder or a hub id")
    pin = settings.revision
    if pin is not None and not re.fullmatch("[0-9a-f]{40}", pin):
        raise wrong_setting("settings.revision", pin, "Give the 40-digit hash of a commit")
    return settings
