"""Gemini Live: one setup, then realtime input; JSON in binary frames.

It has no ids: turns are numbered here as they come.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from hfd.models.realtime.dialect import Dialect, Message, Traits, b64, merged, unb64
from hfd.models.realtime.facts import (
    AnswerBegan,
    AnswerEnded,
    Decision,
    Fact,
    GoingAway,
    Interrupted,
    Opened,
    Other,
    Sound,
    Usage,
    UserSpeech,
    UserWords,
    Words,
)
from hfd.models.realtime.settings import Settings
from hfd.models.sockets.messages import read_object

AUDIO_ONLY_S, WITH_VIDEO_S = 900.0, 120.0


class Gemini(Dialect):
    """`setup` once; `realtimeInput` for sound and video; several facts in one message."""

    families = ("serverContent", "sessionResumptionUpdate", "toolCall", "voiceActivity")

    def __init__(self, settings: Settings, seed: int = 0) -> None:
        super().__init__(settings, seed)
        with_video = settings.frame_rate() > 0
        self.traits = Traits(
            unit_samples=1600,
            video=True,
            max_media_s=WITH_VIDEO_S if with_video else AUDIO_ONLY_S,
            context="sliding"
            if "contextWindowCompression" in settings.extra_session
            else "unknown",
            key_env=("GOOGLE_API_KEY", "GEMINI_API_KEY"),
        )
        self._turn = 0
        self._open = False

    def headers(self, key: str) -> Mapping[str, str]:
        return {"x-goog-api-key": key} if key else {}

    def opening(self) -> Sequence[Message]:
        s = self.settings
        generation: dict[str, Any] = {"responseModalities": [s.modality.upper()]}
        if s.seed:
            generation["seed"] = self.seed
        if s.voice:
            voice = {"prebuiltVoiceConfig": {"voiceName": s.voice}}
            generation["speechConfig"] = {"voiceConfig": voice}
        setup: dict[str, Any] = {
            "model": f"models/{s.model}",
            "generationConfig": generation,
            "inputAudioTranscription": {},
            "outputAudioTranscription": {},
        }
        if s.turn_detection is not None:
            setup["realtimeInputConfig"] = s.turn_detection
        if s.instructions:
            setup["systemInstruction"] = {"parts": [{"text": s.instructions}]}
        return [json.dumps({"setup": merged(setup, s.extra_session)}, ensure_ascii=False)]

    def unit(self, sound: bytes, frames: Sequence[bytes]) -> Sequence[Message]:
        audio = _input(audio=_blob(sound, "audio/pcm;rate=16000"))
        return [audio, *(_input(video=_blob(frame, "image/jpeg")) for frame in frames)]

    def ending(self) -> Sequence[Message]:
        return [_input(audioStreamEnd=True)]

    def read(self, raw: str | bytes) -> Sequence[Fact]:
        message = read_object(raw.decode() if isinstance(raw, bytes) else raw)
        facts: list[Fact] = []
        for name, value in message.items():
            match name:
                case "setupComplete":
                    facts.append(Opened(value or {}))
                case "serverContent":
                    facts += self._content(value)
                case "goAway":
                    facts.append(GoingAway(_seconds(value.get("timeLeft"))))
                case "usageMetadata":
                    facts.append(Usage(value))
                case "voiceActivity":
                    facts.append(_voice_activity(value))
                case other:
                    facts.append(Other(other))
        return facts

    def _content(self, content: Mapping[str, Any]) -> list[Fact]:
        facts: list[Fact] = []
        if heard := (content.get("inputTranscription") or {}).get("text"):
            facts.append(UserWords(heard))
        for part in (content.get("modelTurn") or {}).get("parts") or []:
            if data := (part.get("inlineData") or {}).get("data"):
                facts += [*self._begun(), Sound(unb64(data), self._name, self._name)]
            elif part.get("text") and not part.get("thought"):
                facts += [*self._begun(), Words(part["text"], self._name)]
        if words := (content.get("outputTranscription") or {}).get("text"):
            facts.append(Words(words, self._name))
        if content.get("interrupted"):
            facts += [Interrupted(self._name), *self._ended("cancelled", "interrupted")]
        if content.get("turnComplete"):
            facts += self._ended("completed", str(content.get("turnCompleteReason") or ""))
        return facts or [Other("serverContent." + ",".join(content))]

    @property
    def _name(self) -> str:
        return f"turn{self._turn}"

    def _begun(self) -> list[Fact]:
        if self._open:
            return []
        self._open = True
        return [AnswerBegan(self._name), Decision("speak", {"answer": self._name})]

    def _ended(self, status: Any, reason: str) -> list[Fact]:
        if not self._open:
            return []
        self._open = False
        self._turn += 1
        return [AnswerEnded(f"turn{self._turn - 1}", status, reason)]


def _input(**fields: Any) -> str:
    return json.dumps({"realtimeInput": fields})


def _blob(data: bytes, kind: str) -> dict[str, str]:
    return {"data": b64(data), "mimeType": kind}


def _seconds(duration: Any) -> float:
    """A protobuf duration such as ``"59.5s"``; 0 where it is none."""
    try:
        return float(str(duration).removesuffix("s"))
    except ValueError:
        return 0.0


def _voice_activity(value: Mapping[str, Any]) -> Fact:
    kind = str(value.get("voiceActivityType") or value.get("type") or "")
    detail = {"audio_offset": value["audioOffset"]} if "audioOffset" in value else {}
    if kind.endswith(("START", "END")):
        return UserSpeech(kind.endswith("START"), detail)
    return Other("voiceActivity")
