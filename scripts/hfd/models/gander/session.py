"""Gander's online runner, one sample after another, on one thread.

Its own file loop is not used (it feeds up to 20 s of silence after the file), nor are its worker
threads, whose time nobody could count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hfd.models.gander.settings import Settings
from hfd.models.minicpmo.session import Parts, Session


@dataclass(frozen=True, kw_only=True)
class GanderParts(Parts):
    """A loaded Gander.

    Attributes:
        runner: the public package's OnlineRunner; its duplex object is `duplex`.
        prompt: the system prompt of its training, or None where the package has none.
    """

    runner: Any
    prompt: str | None = None


class GanderSession(Session):
    """MiniCPM-o's session, with Gander's runner in place of the bare duplex object."""

    _parts: GanderParts
    _settings: Settings

    def _generate_arguments(self) -> dict[str, Any]:
        settings = self._settings
        return {
            "max_new_speak_tokens_per_chunk": settings.tokens_per_unit,
            "decode_mode": settings.decode,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "top_k": settings.top_k,
            "text_repetition_penalty": settings.repetition_penalty,
            "text_repetition_window_size": settings.repetition_window,
        }

    def _prepare(self) -> None:
        self._parts.runner.prepare(
            system_prompt=self._settings.system_prompt or self._parts.prompt,
            ref_audio_path=self._parts.voice_path,
            tools=None,
        )

    def answer(self) -> dict[str, Any]:
        """Let the model decide, speak, listen or break off, and close the second.

        The runner itself refuses a second that the talker's positions have no room for.
        """
        return self._parts.runner.streaming_generate(
            prompt_wav_path=self._parts.voice_path, **self._generate
        )
