"""One file per dialect; nothing else knows their names."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from hfd.errors import HfdError
from hfd.media_time import SAMPLE_RATE
from hfd.models.realtime.dialect import Dialect
from hfd.models.realtime.dialects.gemini import Gemini
from hfd.models.realtime.dialects.moshi import Moshi
from hfd.models.realtime.dialects.openai import OpenAI
from hfd.models.realtime.dialects.openai_live import OpenAILive
from hfd.models.realtime.dialects.qwen import Qwen
from hfd.models.realtime.dialects.vllm_omni import VllmOmni
from hfd.models.realtime.settings import Settings

DIALECTS: dict[str, type[Dialect]] = {
    "gemini": Gemini,
    "moshi": Moshi,
    "openai": OpenAI,
    "openai_live": OpenAILive,
    "qwen": Qwen,
    "vllm_omni": VllmOmni,
}


def make_dialect(settings: Settings, seed: int = 0) -> Dialect:
    """A dialect for one session (`seed`: the sample's), with the traits that the settings change.

    Raises:
        HfdError: no such dialect, or a setting that it cannot carry.
    """
    kind = DIALECTS.get(settings.dialect)
    if kind is None:
        raise HfdError(
            f"is {settings.dialect!r}",
            field="settings.dialect",
            remedy=f"Known: {', '.join(DIALECTS)}",
        )
    dialect = kind(settings, seed)
    changes: dict[str, Any] = {
        "input_rate": settings.input_rate,
        "output_rate": settings.output_rate,
        "codec": settings.input_format,
        "exact_units": settings.exact_units,
        "max_media_s": settings.max_media_s,
        "unit_samples": settings.unit_ms and settings.unit_ms * SAMPLE_RATE // 1000,
    }
    given = {key: value for key, value in changes.items() if value is not None}
    dialect.traits = replace(dialect.traits, **given)
    if settings.frame_rate() and not dialect.traits.video:
        raise HfdError(
            f"is {settings.frame_fps}, but {settings.dialect} takes no video",
            field="settings.frame_fps",
            remedy="Write 0: the results then say audio_only",
        )
    return dialect
