"""What OpenAI Realtime, vLLM-Omni and Qwen share: JSON events, GA names and the older beta ones."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from hfd.models.realtime.dialect import Dialect, Message, b64, say, unb64
from hfd.models.realtime.facts import (
    AnswerBegan,
    AnswerEnded,
    Decision,
    Fact,
    Failed,
    Opened,
    Other,
    Sound,
    UserSpeech,
    UserWords,
    Words,
)
from hfd.models.sockets.messages import read_object

_SOUND = ("response.output_audio.delta", "response.audio.delta")
_WORDS = (
    "response.output_audio_transcript.delta",
    "response.output_text.delta",
    "response.audio_transcript.delta",
    "response.text.delta",
)
_HEARD = "conversation.item.input_audio_transcription.completed"
_SPEECH = "input_audio_buffer.speech_"
REFUSED = ("invalid_api_key", "insufficient_quota", "model_not_found", "access_denied")
BUSY = ("rate_limit_exceeded", "resource_exhausted", "server_overloaded")
BENIGN = (
    "response_cancel_not_active",
    "response_not_active",
    "item_truncate_invalid_item_id",
    "playback_ack_too_late",
    "playback_item_not_found",
)
"""Errors about a stop that came too late: the sample goes on."""


class OpenAIEvents(Dialect):
    """A session that is asked for with ``session.update`` and spoken to in items and appends."""

    @abstractmethod
    def session(self) -> dict[str, Any]:
        """The session that is asked for."""

    def opening(self) -> Sequence[Message]:
        return [say("session.update", session=self.session())]

    def heard(self, item: str, heard_ms: int) -> Sequence[Message]:
        fields = {"item_id": item, "content_index": 0, "audio_end_ms": heard_ms}
        return [say("conversation.item.truncate", **fields)]

    def read(self, raw: str | bytes) -> Sequence[Fact]:
        return self.event(read_object(raw))

    def event(self, event: Mapping[str, Any]) -> Sequence[Fact]:
        """What one event says; the relatives add their own names."""
        name = event["type"]
        if name in _SOUND:
            return [Sound(unb64(event["delta"]), answer_of(event), event.get("item_id") or "")]
        if name in _WORDS:
            return [Words(event["delta"], answer_of(event))]
        if name.startswith(_SPEECH):
            times = {k: v for k, v in event.items() if k.endswith("_ms")}
            return [UserSpeech(name.endswith("started"), times)]
        match name:
            case "session.updated":
                return [Opened(event.get("session") or {})]
            case "response.created":
                answer = answer_of(event)
                return [AnswerBegan(answer), Decision("speak", {"answer": answer})]
            case "response.done":
                return [answer_ended(event)]
            case "error":
                return [failed(event.get("error") or event)]
        if name == _HEARD:
            return [UserWords(event["transcript"])]
        return [Other(name)]


def append(sound: bytes) -> str:
    """A unit of sound."""
    return say("input_audio_buffer.append", audio=b64(sound))


def frame_item(jpeg: bytes) -> str:
    """A video frame as an item of the conversation; there is no stream of frames."""
    part = {"type": "input_image", "image_url": f"data:image/jpeg;base64,{b64(jpeg)}"}
    item = {"type": "message", "role": "user", "content": [part]}
    return say("conversation.item.create", item=item)


def answer_of(event: Mapping[str, Any]) -> str:
    """The id of the answer an event belongs to."""
    nested = event.get("response")
    found = event.get("response_id") or (nested.get("id") if isinstance(nested, Mapping) else None)
    return str(found or "")


def answer_ended(event: Mapping[str, Any]) -> AnswerEnded:
    """``response.done``."""
    response = event.get("response") or {}
    status = response.get("status", "completed")
    if status not in ("completed", "cancelled", "incomplete", "failed"):
        raise ValueError(f"an answer ended as {status!r}")
    details = response.get("status_details") or {}
    error = details.get("error") or {}
    reason = error.get("message") or error.get("code") or details.get("reason") or ""
    return AnswerEnded(answer_of(event), status, str(reason), response.get("usage") or {})


def failed(error: Mapping[str, Any]) -> Failed:
    """An ``error`` event."""
    code = str(error.get("code") or error.get("type") or "error")
    text = str(error.get("message") or "")
    if code in REFUSED:
        return Failed(code, text, kind="refused")
    if code in BUSY:
        return Failed(code, text, kind="busy")
    return Failed(code, text, fatal=code not in BENIGN)


def given(**fields: Any) -> dict[str, Any]:
    """The fields that have a value."""
    return {key: value for key, value in fields.items() if value is not None}
