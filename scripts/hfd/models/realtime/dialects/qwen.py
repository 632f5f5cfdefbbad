"""Qwen-Omni-Realtime (Alibaba): beta names, a flat session, a stream of JPEG images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from hfd.models.realtime.dialect import Message, Traits, b64, merged, say
from hfd.models.realtime.dialects.openai import OpenAI
from hfd.models.realtime.dialects.openai_events import append, given
from hfd.models.realtime.facts import Fact, Finished


class Qwen(OpenAI):
    """Images ride beside the sound, never before it; ``session.finish`` waits for answers."""

    traits: Traits = Traits(
        unit_samples=1600,
        cuts_on_user_speech=True,
        video=True,
        max_frame_bytes=192_000,  # 256 KB as base64
        max_media_s=7200.0,
        key_env=("DASHSCOPE_API_KEY",),
    )
    default_turns: ClassVar[Mapping[str, Any]] = {
        "type": "server_vad",
        "threshold": 0.5,
        "silence_duration_ms": 800,
    }

    def session(self) -> dict[str, Any]:
        s = self.settings
        flat: dict[str, Any] = {
            "modalities": ["text"] if s.modality == "text" else ["text", "audio"],
            "input_audio_format": "pcm",
            "output_audio_format": "pcm",
            "turn_detection": self.turns,
            "enable_search": False,
            **given(
                voice=s.voice,
                instructions=s.instructions,
                seed=self.seed if s.seed else None,
            ),
        }
        return merged(flat, s.extra_session)

    def unit(self, sound: bytes, frames: Sequence[bytes]) -> Sequence[Message]:
        return [append(sound), *(say("input_image_buffer.append", image=b64(f)) for f in frames)]

    def ending(self) -> Sequence[Message]:
        return [say("session.finish")]

    def heard(self, item: str, heard_ms: int) -> Sequence[Message]:
        return ()

    def relied_on(self) -> Mapping[str, Any]:
        return {f"turn_detection.{key}": value for key, value in self.turns.items()}

    def event(self, event: Mapping[str, Any]) -> Sequence[Fact]:
        if event["type"] == "session.finished":
            return [Finished("server_done")]
        return super().event(event)
