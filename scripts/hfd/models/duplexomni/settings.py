"""The settings of DuplexOmni (config/models.yaml), checked before anything is loaded."""

from __future__ import annotations

import os
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, TypeVar
from urllib.parse import urlsplit

from hfd.errors import HfdError
from hfd.models.base import Clock
from hfd.models.duplexomni.s2 import S2Settings

SYSTEM_PROMPT = "你是视频通话助手\n你的助手风格是：控场型。\n你的开场方式要求：先短答不展开。"
"""One of the forms the model was trained with: role, one of 5 styles, one of 4 openings."""

T = TypeVar("T")


@dataclass(frozen=True)
class StackUrls:
    """A thinker and a talker that are already up, on this machine."""

    thinker_url: str
    talker_url: str


@dataclass(frozen=True)
class StackLaunch:
    """A thinker and a talker that the worker starts and stops.

    Attributes:
        server_root: ``inference_framework/realtime_serving`` of the authors' checkout.
        python: interpreter with the authors' vLLM fork.
        thinker_weights, talker_weights: folders of the two checkpoints (may be one).
        thinker_tp, talker_tp: GPUs of each, the job's first ones for the thinker.
        max_model_len: THINKER_MAX_MODEL_LEN; decides how long a file may be.
        thinker_gpu_share, talker_gpu_share, mtp_gpu_share: part of a GPU's memory each vLLM
            engine takes; the MTP engine shares the talker's last GPU.
        talker_temperature, talker_top_p, talker_top_k: sampling of the voice.
        gpu_memory_gib: memory of one GPU; null: nvidia-smi is asked.
        ready_timeout_s: how long loading may take.
    """

    server_root: str
    python: str
    thinker_weights: str
    talker_weights: str
    thinker_tp: int = 4
    talker_tp: int = 4
    max_model_len: int = 65536
    thinker_gpu_share: float = 0.8
    talker_gpu_share: float = 0.6
    mtp_gpu_share: float = 0.12
    talker_temperature: float = 1.0
    talker_top_p: float = 0.9
    talker_top_k: int = 50
    gpu_memory_gib: float | None = None
    ready_timeout_s: float = 1800.0


@dataclass(frozen=True)
class Settings:
    """All settings of the model.

    Attributes:
        stack: servers that are up, or how to start them.
        clock: ``arrival``: fed in real time, the talker works beside the thinker's next slice;
            ``virtual``: thinker and talker one after the other, their time measured.
        picture_interval: one picture in that many slices (the model was trained with 4).
        picture_short_side, jpeg_quality: size and quality of a picture.
        system_prompt: the session's first message.
        temperature, max_tokens: sampling of the thinker.
        request_timeout_s: longest wait for a server.
        weights_revision: pinned revision of the weights, for the record.
        s2: the thinking layer, or null for none.
    """

    stack: StackUrls | StackLaunch
    clock: Clock = "arrival"
    picture_interval: int = 4
    picture_short_side: int = 784
    jpeg_quality: int = 85
    system_prompt: str = SYSTEM_PROMPT
    temperature: float = 0.01
    max_tokens: int = 999
    request_timeout_s: float = 120.0
    weights_revision: str | None = None
    s2: S2Settings | None = None

    @property
    def stack_is_ours(self) -> bool:
        """Whether the worker starts and stops the servers."""
        return isinstance(self.stack, StackLaunch)


def filled(stack: StackUrls | StackLaunch) -> StackUrls | StackLaunch:
    """The stack with ``$NAME`` in its texts replaced from the environment of this machine.

    So the recorded settings need not name a machine's paths and ports.

    Raises:
        HfdError: such a variable is not set.
    """
    values = {}
    for name, value in vars(stack).items():
        values[name] = os.path.expandvars(value) if isinstance(value, str) else value
        if "$" in str(values[name]):
            raise _wrong(f"settings.stack.{name}", value, "Set the environment variable it names")
    return replace(stack, **values)


def read_settings(settings: Mapping[str, Any]) -> Settings:
    """Check the settings.

    Raises:
        HfdError: unknown or missing key, impossible value, or S2 with the virtual clock.
    """
    values = dict(settings)
    stack = _mapping(values.pop("stack", None), "settings.stack")
    stack_type = StackUrls if "thinker_url" in stack else StackLaunch
    s2 = values.pop("s2", None)
    found = _build(
        Settings,
        values,
        "settings",
        stack=_build(stack_type, stack, "settings.stack"),
        s2=None if s2 is None else _build(S2Settings, _mapping(s2, "settings.s2"), "settings.s2"),
    )
    _check_ranges(found)
    return found


def _check_ranges(settings: Settings) -> None:
    if settings.clock not in ("arrival", "virtual"):
        raise _wrong("settings.clock", settings.clock, "Write arrival or virtual")
    for key, least, most in (
        ("picture_interval", 1, 888),
        ("picture_short_side", 32, 2160),
        ("jpeg_quality", 1, 100),
        ("max_tokens", 64, 4096),
    ):
        if not least <= getattr(settings, key) <= most:
            value = getattr(settings, key)
            raise _wrong(f"settings.{key}", value, f"Write a number from {least} to {most}")
    if (
        isinstance(settings.stack, StackLaunch)
        and min(settings.stack.thinker_tp, settings.stack.talker_tp) < 1
    ):
        raise _wrong("settings.stack", "0 GPUs", "Give thinker_tp and talker_tp one GPU or more")
    if settings.s2 is not None:
        _check_s2(settings.s2, settings.clock)


def _check_s2(s2: S2Settings, clock: Clock) -> None:
    if clock != "arrival":
        raise HfdError(
            "S2 thinks in real time, the virtual clock does not run in it",
            field="settings.s2",
            remedy="Set clock: arrival, or s2: null",
        )
    if urlsplit(s2.url).scheme not in ("http", "https") or "@" in s2.url:
        raise _wrong("settings.s2.url", s2.url, "Write http(s)://host/v1, without a key in it")


def _build(kind: type[T], values: Mapping[str, Any], place: str, **made: Any) -> T:
    """Make a settings object; every value must have its field's type, every key a field."""
    hints = typing.get_type_hints(kind)
    known = {field.name: field for field in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(set(values) - (set(known) - set(made))):
        raise HfdError(f"unknown key {unknown[0]!r}", field=place, remedy=f"Known: {sorted(known)}")
    for key, value in values.items():
        if not _fits(value, hints[key]):
            raise _wrong(f"{place}.{key}", value, f"Write {_type_name(hints[key])}")
    try:
        return kind(**values, **made)
    except TypeError as error:
        missing = str(error).partition(": ")[2] or str(error)
        raise HfdError(f"is missing: {missing}", field=place) from error


def _fits(value: Any, hint: Any) -> bool:
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        return any(_fits(value, part) for part in typing.get_args(hint))
    if typing.get_origin(hint) is typing.Literal:
        return isinstance(value, str)
    plain = typing.get_origin(hint) or hint
    if plain in (int, float) and isinstance(value, bool):
        return False
    return isinstance(value, int | float if plain is float else plain)


def _type_name(hint: Any) -> str:
    return getattr(hint, "__name__", str(hint))


def _mapping(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise _wrong(place, value, "Write its keys (docs/duplexomni.md)")
    return value


def _wrong(place: str, value: Any, remedy: str) -> HfdError:
    return HfdError(f"{value!r} does not fit", field=place, remedy=remedy)
