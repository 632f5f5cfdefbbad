"""The settings of a realtime service (config/models.yaml), checked before anything is connected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Annotated, Any, Literal
from urllib.parse import parse_qsl, urlsplit

from hfd.errors import HfdError
from hfd.media_time import FPS
from hfd.models.servers import ServerSpec
from hfd.models.settings import Range, make_settings, wrong_setting

_SECRET_NAMES = {"key", "api_key", "apikey", "api-key", "token", "access_token", "auth_token"}
Seconds = Annotated[float, Range(0, 7200)]


@dataclass(frozen=True)
class Settings:
    """All settings with their defaults; docs/realtime.md tells each.

    Attributes:
        dialect: name of a file in ``dialects/``.
        url: where the server listens; ``{port}`` is the port of the child server.
        model: the service's name for the model.
        api_key_env: NAME of the environment variable that holds the key; null: the dialect's own.
        weights: what is recorded as the weights' name, for open models.
        voice, instructions: as the service takes them; null: its own.
        turn_detection: the service's object, verbatim; null: its own, or the model decides.
        modality: ``audio``, or ``text`` for servers without a voice.
        names: event names of the openai dialect: ``ga``, or ``beta`` for its relatives.
        unit_ms, input_rate, output_rate: null: the dialect's.
        exact_units, input_format: null: the dialect's (vllm_omni models differ).
        frame_fps: video frames a second, a number or a fraction; 0: none.
        frames_as: vllm_omni: frames ride on the sound (``append``) or are items (``item``).
        extra_session, extra_body: merged into the session's object, resp. its ``extra_body``.
        ref_audio: vllm_omni: a wav file with the voice to speak in.
        expected_session: keys of the echoed session (dotted) that must have these values.
        input_clock: vllm_omni: whether model time shall follow our input alone.
        truncation: openai: what the server does when its context is full.
        seed: whether the sample's seed is sent, where the dialect has a word for it.
        region: where the service runs, for the record.
        setup_s, stall_s, idle_s, drain_max_s, max_lag_s: limits in seconds.
        max_media_s: longest file; null: the dialect's limit.
        attempts: how often a connection is tried before the first unit.
        warmup: whether a session with 2 s of silence is thrown away after loading.
        budget: file with the money and time that may be spent; null: no limit.
        record: whether raw messages are kept, without secrets.
        servers: ``server``, if the worker starts it itself (`ServerSpec`).
    """

    dialect: str
    url: str
    model: str | None = None
    api_key_env: str | None = None
    weights: str | None = None
    voice: str | None = None
    instructions: str | None = None
    turn_detection: dict[str, Any] | None = None
    modality: Literal["audio", "text"] = "audio"
    names: Literal["ga", "beta"] = "ga"
    unit_ms: Annotated[int, Range(20, 2000)] | None = None
    input_rate: Annotated[int, Range(8000, 48_000)] | None = None
    output_rate: Annotated[int, Range(8000, 48_000)] | None = None
    input_format: Literal["pcm16", "f32"] | None = None
    exact_units: bool | None = None
    frame_fps: float | str = 0
    frames_as: Literal["append", "item"] = "append"
    extra_session: dict[str, Any] = field(default_factory=dict)
    extra_body: dict[str, Any] = field(default_factory=dict)
    ref_audio: str | None = None
    expected_session: dict[str, Any] = field(default_factory=dict)
    input_clock: Literal["off", "try", "require"] = "off"
    truncation: Literal["disabled", "auto"] = "disabled"
    seed: bool = True
    region: str | None = None
    setup_s: Seconds = 30.0
    stall_s: Seconds = 15.0
    idle_s: Seconds = 3.0
    drain_max_s: Seconds = 120.0
    max_lag_s: Seconds = 0.5
    max_media_s: float | None = None
    attempts: Annotated[int, Range(1, 10)] = 3
    warmup: bool = False
    budget: str | None = None
    record: bool = False
    servers: dict[str, Any] = field(default_factory=dict)

    def server_spec(self) -> ServerSpec | None:
        """How the child server is started, if there is one.

        Raises:
            HfdError: a key that does not exist, or a value that does not fit.
        """
        given = self.servers.get("server")
        return None if given is None else ServerSpec.from_settings("server", given)

    def frame_rate(self) -> Fraction:
        """`frame_fps` as an exact number; 0: no video frames.

        Raises:
            HfdError: no number from 0 to 5.
        """
        try:
            rate = Fraction(str(self.frame_fps))
        except (ValueError, ZeroDivisionError):
            rate = Fraction(-1)
        if not 0 <= rate <= FPS:
            remedy = f"Write a number from 0 to {FPS}"
            raise wrong_setting("settings.frame_fps", self.frame_fps, remedy)
        return rate


def read_settings(given: Mapping[str, Any]) -> Settings:
    """Check the settings as far as no dialect is needed for it.

    Raises:
        HfdError: unknown key, impossible value, a key inside of the url, or a ``{port}`` that no
            child server gives.
    """
    settings = make_settings(Settings, given)
    if not settings.url.startswith(("ws://", "wss://")):
        raise wrong_setting("settings.url", settings.url, "Write ws://… or wss://…")
    parts = urlsplit(settings.url)
    if parts.username or parts.password or _SECRET_NAMES & {n for n, _ in parse_qsl(parts.query)}:
        raise HfdError(
            "holds a key, and settings are written into every result",
            field="settings.url",
            remedy="Take it out, and name an environment variable in settings.api_key_env",
        )
    for name in settings.servers:
        if name != "server":
            place = f"settings.servers.{name}"
            raise HfdError("is no server of this model", field=place, remedy="Known: server")
    if "{port}" in settings.url and not settings.servers:
        raise HfdError(
            "has no port: there is no child server whose port it could be",
            field="settings.url",
            remedy="Write the port of the running server, or add settings.servers.server",
        )
    return settings
