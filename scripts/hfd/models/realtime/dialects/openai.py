"""OpenAI Realtime (GA names), and with ``names: beta`` its relatives (StepFun, Azure's older ones).

Turn based: a voice activity detector in front of the model decides; while the model speaks it is
heard only to stop itself. It needs silence in the stream to end a turn, which every file has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from hfd.errors import HfdError
from hfd.models.realtime.dialect import Message, Traits, merged
from hfd.models.realtime.dialects.openai_events import OpenAIEvents, append, frame_item, given
from hfd.models.realtime.settings import Settings


class OpenAI(OpenAIEvents):
    """GA names out, GA and beta names in."""

    traits: Traits = Traits(
        unit_samples=1600,
        input_rate=24_000,
        hears_playback=True,
        cuts_on_user_speech=True,
        video=True,
        max_media_s=3600.0,
        key_env=("OPENAI_API_KEY",),
    )
    default_turns: ClassVar[Mapping[str, Any]] = {
        "type": "server_vad",
        "threshold": 0.5,
        "prefix_padding_ms": 300,
        "silence_duration_ms": 500,
        "create_response": True,
        "interrupt_response": True,
    }

    def __init__(self, settings: Settings, seed: int = 0) -> None:
        super().__init__(settings, seed)
        self.turns = settings.turn_detection or dict(self.default_turns)
        if self.turns.get("create_response") is False:
            raise HfdError(
                "asks for no answer: the model would have to be told when to speak",
                field="settings.turn_detection.create_response",
                remedy="Leave it out: only models that take the turn by themselves are run here",
            )
        self.traits = replace(
            self.traits,
            cuts_on_user_speech=self.turns.get("interrupt_response", True),
            context="disabled" if settings.truncation == "disabled" else "sliding",
        )

    def session(self) -> dict[str, Any]:
        s, t = self.settings, self.traits
        if s.names == "beta":
            flat = {
                "modalities": ["text"] if s.modality == "text" else ["text", "audio"],
                "input_audio_format": "pcm16",
                "output_audio_format": "pcm16",
                "turn_detection": self.turns,
                **given(voice=s.voice, instructions=s.instructions),
            }
            return merged(flat, s.extra_session)
        output = {"format": {"type": "audio/pcm", "rate": t.output_rate}, **given(voice=s.voice)}
        nested = {
            "type": "realtime",
            "output_modalities": [s.modality],
            "audio": {
                "input": {
                    "format": {"type": "audio/pcm", "rate": t.input_rate},
                    "noise_reduction": None,
                    "turn_detection": self.turns,
                },
                "output": output,
            },
            "truncation": s.truncation,
            **given(instructions=s.instructions),
        }
        return merged(nested, s.extra_session)

    def unit(self, sound: bytes, frames: Sequence[bytes]) -> Sequence[Message]:
        return [*map(frame_item, frames), *([append(sound)] if sound else [])]

    def relied_on(self) -> Mapping[str, Any]:
        if self.settings.names == "beta":
            return {f"turn_detection.{key}": self.turns[key] for key in ("type",)}
        return {
            "audio.input.format.rate": self.traits.input_rate,
            "audio.output.format.rate": self.traits.output_rate,
            "audio.input.noise_reduction": None,
            "truncation": self.settings.truncation,
            **{f"audio.input.turn_detection.{k}": v for k, v in self.turns.items()},
        }
