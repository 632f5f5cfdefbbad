"""Settings of the MiniCPM-o runner, checked before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from hfd.errors import HfdError
from hfd.models.settings import Range, Share, make_settings, wrong_setting


@dataclass(frozen=True)
class Settings:
    """All settings with their defaults; docs/minicpmo.md names the source of each default.

    Attributes:
        model_path: folder of a snapshot that was downloaded; hub ids are refused, as loading runs
            the snapshot's own code.
        variant: which model it is: ``minicpm`` (MiniCPM-o 4.5) or ``venus`` (Realtime-Venus-Omni).
        voice: WAV file of the voice, at most 16.9 s; None: the snapshot's own.
        system_prompt: None: the official one.
        frames: ``stacked``: the first frame of a second, and the other four as one grid, so that
            no frame is skipped; ``first``: the first one alone.
        max_slice: into how many slices the first frame may be cut; 1: none.
        decode: how text is drawn: ``sampling`` or ``greedy``. Speech is always sampled.
        temperature, top_k, top_p, repetition_penalty, repetition_window: sampling of text.
        tokens_per_unit: the model's limit on new tokens of a second, its decisions included.
        length_penalty: below 1 turns end sooner; None: what the snapshot's code does by itself.
        force_listen_s: first seconds in which the model may only listen.
        speech_temperature, speech_repetition_penalty: sampling of speech codes.
        num_steps: of the flow-matching solver.
        window: only ``off``: every other mode drops old seconds.
        device: torch device, or ``auto`` (the first GPU, else the CPU).
        dtype: of everything but the vocoder; ``auto``: bfloat16 on a GPU, float32 on a CPU.
        acceleration: ``graphs``, ``eager``, or ``auto`` (graphs where a GPU can).
        min_free_gpu_gb: free GPU memory (10^9 bytes) below which loading is refused.
    """

    model_path: str
    variant: Literal["minicpm", "venus"] = "minicpm"
    voice: str | None = None
    system_prompt: str | None = None
    frames: Literal["stacked", "first"] = "stacked"
    max_slice: Annotated[int, Range(1, 9)] = 1
    decode: Literal["sampling", "greedy"] = "sampling"
    temperature: Annotated[float, Range(0.01, 10)] = 0.7
    top_k: Annotated[int, Range(0, 200_000)] = 100
    top_p: Share = 0.8
    repetition_penalty: Annotated[float, Range(0.1, 10)] = 1.05
    repetition_window: Annotated[int, Range(1, 40_960)] = 512
    tokens_per_unit: Annotated[int, Range(2, 100)] = 20
    length_penalty: Annotated[float, Range(0.1, 5)] | None = None
    force_listen_s: Annotated[int, Range(0, 3600)] = 0
    speech_temperature: Annotated[float, Range(0.01, 10)] = 0.8
    speech_repetition_penalty: Annotated[float, Range(0.1, 10)] = 1.05
    num_steps: Annotated[int, Range(1, 16)] = 10
    window: Literal["off"] = "off"
    device: str = "auto"
    dtype: Literal["auto", "bfloat16", "float32"] = "auto"
    acceleration: Literal["auto", "graphs", "eager"] = "auto"
    min_free_gpu_gb: Annotated[float, Range(0, 1000)] = 34.0

    @property
    def drawing(self) -> dict[str, Any]:
        """How text is drawn, under the names of upstream's arguments."""
        arguments = {
            "temperature": self.temperature,
            "top_k": self.top_k,
            "top_p": self.top_p,
            "text_repetition_penalty": self.repetition_penalty,
            "text_repetition_window_size": self.repetition_window,
        }
        if self.length_penalty is not None:
            arguments["length_penalty"] = self.length_penalty
        return arguments


def parse_settings(given: Mapping[str, Any]) -> Settings:
    """Check `given` and fill in the defaults.

    Raises:
        HfdError: unknown key, wrong type, value outside its list or range, or no model_path.
    """
    refuse_windows(given)
    settings = make_settings(Settings, given)
    if not settings.model_path:
        raise HfdError(
            "is empty",
            field="settings.model_path",
            remedy="Give the folder of a downloaded snapshot (docs/minicpmo.md, Weights)",
        )
    return settings


def refuse_windows(given: Mapping[str, Any]) -> None:
    """Refuse every way of cropping the context, with the reason."""
    if isinstance(given, Mapping) and given.get("window", "off") != "off":
        raise wrong_setting(
            "settings.window",
            given["window"],
            "Write off: every other mode drops old seconds, and the context is never cropped",
        )
