"""The settings of Aero (config/models.yaml), checked before anything is started."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any

from hfd.errors import HfdError
from hfd.media_time import FPS
from hfd.models.servers import ServerSpec
from hfd.models.settings import Range, make_settings, wrong_setting

Seconds = Annotated[float, Range(0, 3600)]


@dataclass(frozen=True)
class Limits:
    """Times and counts that end a sample or an utterance; docs/aero.md tells each."""

    connect_s: Seconds = 10.0
    utterance_gap_s: Seconds = 0.96
    final_event_s: Seconds = 5.0
    speech_idle_s: Seconds = 15.0
    drain_max_s: Seconds = 600.0
    max_lag_s: Seconds = 0.5
    late_deltas: Annotated[int, Range(0, 1000)] = 6


@dataclass(frozen=True)
class Settings(Limits):
    """All settings with their defaults; docs/aero.md tells each.

    Attributes:
        url, tts_url: where the two servers listen; ``{port}`` is a child server's port.
        servers: ``aero`` and ``tts``, as far as the worker starts them itself (`ServerSpec`).
        wire: file with the Aero server's vocabulary, relative to the repository root.
        weights: what is recorded as the weights' name.
        vocab: the model's ``vocab.json``, if half characters are to be joined.
        picture_fps: video frames a second, a number or a fraction such as ``1/2``.
        speaker, language: the voice; null: the TTS server's first.
        record: whether raw frames are kept.
        max_media_s: longest file, or null for no limit.
    """

    url: str = "ws://127.0.0.1:8090/v1/aero/realtime"
    tts_url: str = "ws://127.0.0.1:8091/v1/tts/stream"
    servers: dict[str, Any] = field(default_factory=dict)
    wire: str = "config/wires/aero.yaml"
    weights: str | None = None
    vocab: str | None = None
    picture_fps: float | str = 1
    speaker: str | None = None
    language: str | None = None
    record: bool = False
    max_media_s: float | None = None

    def server_specs(self) -> dict[str, ServerSpec]:
        """How each child server is started.

        Raises:
            HfdError: a server or a key that does not exist, or a value that does not fit.
        """
        return {name: ServerSpec.from_settings(name, given) for name, given in self.servers.items()}

    def frame_rate(self) -> Fraction:
        """`picture_fps` as an exact number.

        Raises:
            HfdError: no number above 0 and at most 5.
        """
        try:
            rate = Fraction(str(self.picture_fps))
        except (ValueError, ZeroDivisionError):
            rate = Fraction(0)
        if not 0 < rate <= FPS:
            remedy = f"Write a number above 0 and at most {FPS}"
            raise wrong_setting("settings.picture_fps", self.picture_fps, remedy)
        return rate


def read_settings(given: Mapping[str, Any]) -> Settings:
    """Check the settings.

    Raises:
        HfdError: unknown key, impossible value, or a ``{port}`` that no child server gives.
    """
    settings = make_settings(Settings, given)
    for name in settings.servers:
        if name not in ("aero", "tts"):
            raise HfdError(
                "is no server of this model",
                field=f"settings.servers.{name}",
                remedy="Known: aero, tts",
            )
    for key, url, name in (("url", settings.url, "aero"), ("tts_url", settings.tts_url, "tts")):
        if "{port}" in url and name not in settings.servers:
            raise HfdError(
                "has no port: there is no child server whose port it could be",
                field=f"settings.{key}",
                remedy=f"Write the port of the running server, or add settings.servers.{name}",
            )
    return settings
