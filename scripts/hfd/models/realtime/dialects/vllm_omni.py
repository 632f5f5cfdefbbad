"""vLLM-Omni's duplex sessions: GA names, and its own for listening, speaking and the input clock.

One client for every model that the server carries (MiniCPM-o, Nemotron VoiceChat, PersonaPlex,
Qwen3-Omni, JoyAI-VL): they differ in settings. Frames ride on the sound, or are items.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from hfd.errors import HfdError
from hfd.models.realtime.dialect import Message, Traits, b64, merged, say
from hfd.models.realtime.dialects.openai_events import OpenAIEvents, frame_item, given
from hfd.models.realtime.facts import (
    AnswerBegan,
    Decision,
    Fact,
    Finished,
    GoingAway,
    Interrupted,
    Opened,
    Processed,
)
from hfd.models.realtime.settings import Settings


class VllmOmni(OpenAIEvents):
    """The client speaks first: ``session.update`` opens the session (``autostart=0``)."""

    traits: Traits = Traits(
        unit_samples=16_000,
        stream="unit",
        answers_units=True,
        turn_taking="model",
        full_duplex="native",
        hears_playback=True,
        video=True,
        key_env=(),
    )

    def __init__(self, settings: Settings, seed: int = 0) -> None:
        super().__init__(settings, seed)
        self.turns = settings.turn_detection
        native = self.turns is None
        self.traits = replace(
            self.traits,
            turn_taking="model" if native else "vad",
            full_duplex="native" if native else "vad_gated",
            stream="unit" if native else "burst",
            answers_units=native,
            cuts_on_user_speech=not native,
        )
        if "autostart=0" not in settings.url:
            raise HfdError(
                f"is {settings.url!r}: the server would open a session with its own settings",
                field="settings.url",
                remedy="Add autostart=0 to the query",
            )
        self._acknowledged = 0
        self._voice = _data_uri(settings.ref_audio) if settings.ref_audio else None

    def session(self) -> dict[str, Any]:
        s, t = self.settings, self.traits
        form = "audio/pcm" if t.codec == "pcm16" else "audio/pcm_f32le"
        body: dict[str, Any] = {"auto_response": True} if self.turns is None else {}
        if self._voice:
            body["ref_audio"] = self._voice
        if s.input_clock != "off":
            body |= {"clock": "input", "silence_continuation": False}
        session: dict[str, Any] = {
            "type": "realtime",
            "output_modalities": [s.modality],
            "audio": {
                "input": {
                    "format": {"type": form, "rate": t.input_rate},
                    "turn_detection": self.turns,
                },
                "output": {"format": {"type": "audio/pcm", "rate": t.output_rate}},
            },
            "extra_body": merged(body, s.extra_body),
            **given(voice=s.voice, instructions=s.instructions),
        }
        return merged(session, s.extra_session)

    def unit(self, sound: bytes, frames: Sequence[bytes]) -> Sequence[Message]:
        if not sound:
            return []
        fields: dict[str, Any] = {"audio": b64(sound)}
        if self.traits.codec == "f32":
            fields |= {"format": "pcm_f32le", "sample_rate_hz": self.traits.input_rate}
        if frames and self.settings.frames_as == "append":
            fields["video_frames"] = [b64(frame) for frame in frames]
            frames = ()
        return [*map(frame_item, frames), say("input_audio_buffer.append", **fields)]

    def played(self, item: str, played_ms: int) -> Sequence[Message]:
        return [say("playback.ack", item_id=item, played_ms=played_ms)]

    def goodbye(self) -> Sequence[Message]:
        return [say("session.close")]

    def relied_on(self) -> Mapping[str, Any]:
        return {"turn_detection": self.turns} if self.turns else {}

    def event(self, event: Mapping[str, Any]) -> Sequence[Fact]:
        match event["type"]:
            case "response.created":
                return [AnswerBegan(str(event.get("response_id") or event["response"]["id"]))]
            case "response.listen" | "response.speak" as name:
                named = ("response_id", "item_id", "epoch")
                detail = {key: event[key] for key in named if key in event}
                return [Decision("listen" if name == "response.listen" else "speak", detail)]
            case "output_audio_buffer.cleared":
                return [Interrupted(str(event.get("response_id") or ""))]
            case "input_audio_buffer.processed":
                self._acknowledged += 1  # one for every append, in order
                return [Processed(self._acknowledged - 1, {"units": event.get("units")})]
            case "session.closed":
                return [Finished("server_closed")]
            case "session.expired" | "session.replaced":
                return [GoingAway(0.0)]
            case "session.created":
                return [Opened(event.get("session") or {})]
        return super().event(event)


def _data_uri(path: str) -> str:
    """A wav file as a data URI.

    Raises:
        HfdError: there is no such file.
    """
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise HfdError("cannot be read", file=path, field="settings.ref_audio") from error
    return f"data:audio/wav;base64,{base64.b64encode(data).decode()}"
