"""The settings of DuplexOmni (config/models.yaml), checked before anything is loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any
from urllib.parse import urlsplit

from hfd.duplex.model import Clock
from hfd.errors import HfdError
from hfd.models.duplexomni.prompts import S1_SYSTEM_PROMPT
from hfd.models.duplexomni.s2 import S2Settings
from hfd.models.settings import Range, Share, make_settings, wrong_setting


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
    thinker_tp: Annotated[int, Range(1, 64)] = 4
    talker_tp: Annotated[int, Range(1, 64)] = 4
    max_model_len: int = 65536
    thinker_gpu_share: Share = 0.8
    talker_gpu_share: Share = 0.6
    mtp_gpu_share: Share = 0.12
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
        picture_interval: one video frame in that many slices (the model was trained with 4).
        picture_long_side, jpeg_quality: size and quality of a video frame.
        system_prompt: the session's first message.
        temperature, max_tokens: sampling of the thinker.
        request_timeout_s: longest time of one whole request.
        max_lag_s: arrival clock: a slice that leaves later than this after it was due fails the
            sample as ``not_online``.
        drain_max_s: arrival clock: seconds after the file's end in which everything must be over.
        weights_revision: pinned revision of the weights, for the record.
        s2: the thinking layer, or null for none.
    """

    stack: StackUrls | StackLaunch
    clock: Clock = "arrival"
    picture_interval: Annotated[int, Range(1, 888)] = 4
    picture_long_side: Annotated[int, Range(32, 2160)] = 784
    jpeg_quality: Annotated[int, Range(1, 100)] = 85
    system_prompt: str = S1_SYSTEM_PROMPT
    temperature: float = 0.01
    max_tokens: Annotated[int, Range(64, 4096)] = 999
    request_timeout_s: Annotated[float, Range(0.05, 3600)] = 120.0
    max_lag_s: Annotated[float, Range(0, 3600)] = 0.5
    drain_max_s: Annotated[float, Range(0, 3600)] = 120.0
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
    values: dict[str, Any] = {}
    for name, value in vars(stack).items():
        values[name] = os.path.expandvars(value) if isinstance(value, str) else value
        if "$" in str(values[name]):
            remedy = "Set the environment variable it names"
            raise wrong_setting(f"settings.stack.{name}", value, remedy)
    return replace(stack, **values)


def read_settings(settings: Mapping[str, Any]) -> Settings:
    """Check the settings.

    Raises:
        HfdError: unknown or missing key, impossible value, or S2 with the virtual clock.
    """
    stack = settings.get("stack", {})
    are_up = isinstance(stack, Mapping) and "thinker_url" in stack
    kind = StackUrls if are_up else StackLaunch
    found = make_settings(
        Settings, {**settings, "stack": make_settings(kind, stack, "settings.stack")}
    )
    if found.s2 is not None:
        _check_s2(found.s2, found.clock)
    return found


def _check_s2(s2: S2Settings, clock: Clock) -> None:
    if clock != "arrival":
        raise HfdError(
            "S2 thinks in real time, the virtual clock does not run in it",
            field="settings.s2",
            remedy="Set clock: arrival, or s2: null",
        )
    if urlsplit(s2.url).scheme not in ("http", "https") or "@" in s2.url:
        remedy = "Write http(s)://host/v1, without a key in it"
        raise wrong_setting("settings.s2.url", s2.url, remedy)
