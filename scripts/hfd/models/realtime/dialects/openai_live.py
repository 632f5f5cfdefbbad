"""OpenAI Live (gpt-live): full duplex, sound only, one continuous stream each way.

The server's time is our input: with nothing sent it says nothing. Its stream contains its own
silence, and nothing in it tells where an answer begins or ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hfd.models.realtime.dialect import Dialect, Message, Traits, b64, merged, say, unb64
from hfd.models.realtime.dialects.openai_events import failed, given
from hfd.models.realtime.facts import (
    Fact,
    Finished,
    GoingAway,
    Opened,
    Other,
    Sound,
    Usage,
    UserWords,
    Words,
)
from hfd.models.sockets.messages import read_object


class OpenAILive(Dialect):
    """``session.start``, then appends; sound and transcripts come as they please."""

    traits = Traits(
        unit_samples=1600,
        input_rate=24_000,
        stream="continuous",
        input_clock=True,
        turn_taking="model",
        full_duplex="native",
        max_media_s=7200.0,
        key_env=("OPENAI_API_KEY",),
    )

    def session(self) -> dict[str, Any]:
        """The session that is asked for; `format` is that of both directions."""
        s = self.settings
        audio: dict[str, Any] = {"format": {"type": "audio/pcm", "rate": self.traits.input_rate}}
        if s.voice:
            audio["output"] = {"voice": s.voice}
        session = {"model": s.model, "audio": audio, **given(instructions=s.instructions)}
        return merged(session, s.extra_session)

    def opening(self) -> Sequence[Message]:
        return [say("session.start", session=self.session())]

    def unit(self, sound: bytes, frames: Sequence[bytes]) -> Sequence[Message]:
        return [say("session.input_audio.append", audio=b64(sound))] if sound else []

    def goodbye(self) -> Sequence[Message]:
        return [say("session.close")]

    def relied_on(self) -> Mapping[str, Any]:
        return {"audio.format.rate": self.traits.input_rate}

    def read(self, raw: str | bytes) -> Sequence[Fact]:
        event = read_object(raw)
        match event["type"]:
            case "session.output_audio.delta":
                return [Sound(unb64(event["delta"]))]
            case "session.output_transcript.delta":
                return [Words(event["delta"])]
            case "session.input_transcript.delta":
                return [UserWords(event["delta"])]
            case "session.started":
                return [Opened(event["session"])]
            case "session.usage.updated":
                return [Usage({**event["usage"], **(event.get("context_window") or {})})]
            case "session.closed":
                usage = Usage(event.get("usage") or {})
                asked = event.get("reason") == "close_requested"
                ended = Finished("server_closed") if asked else GoingAway(0.0)
                return [usage, ended]
            case "error":
                return [failed(event["error"])]
            case other:
                return [Other(other)]
