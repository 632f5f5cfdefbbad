"""Settings of the Gander runner, checked before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

from hfd.models.minicpmo.settings import Settings as MiniCpmOSettings
from hfd.models.minicpmo.settings import refuse_windows
from hfd.models.settings import Range, make_settings, wrong_setting

NO_EFFECT = (
    "length_penalty",
    "max_slice",
    "force_listen_s",
    "speech_temperature",
    "speech_repetition_penalty",
)
"""Settings of MiniCPM-o that Gander's package does not pass on."""


@dataclass(frozen=True, kw_only=True)
class Settings(MiniCpmOSettings):
    """MiniCPM-o's settings with the release's values, and where Gander lies.

    Attributes:
        model_path: folder of MiniCPM-o 4.5, whose code, vocoder and frozen weights are used.
        gander_path: the release: a folder with ``thinker/`` and ``talker/``; or null.
        thinker_path, talker_path: the two checkpoints, where they lie apart.
        repo_path: a clone of Omni-Interaction-Agent, whose package ``minicpm_ft`` runs the model.
        tokens_per_unit: most new tokens of a second: an action, `text_tokens`, two ends.
        text_tokens: most text tokens of a second.
        speech_codes: speech codes of a second, two seconds of sound; a turn's last one goes on
            until the talker ends it.
    """

    repo_path: str
    gander_path: str | None = None
    thinker_path: str | None = None
    talker_path: str | None = None
    variant: Literal["gander"] = "gander"  # type: ignore[assignment]
    top_k: Annotated[int, Range(0, 200_000)] = 20
    tokens_per_unit: Annotated[int, Range(4, 100)] = 11
    text_tokens: Annotated[int, Range(1, 97)] = 8
    speech_codes: Annotated[int, Range(1, 500)] = 50
    min_free_gpu_gb: Annotated[float, Range(0, 1000)] = 34.0


def parse_settings(given: Mapping[str, Any]) -> Settings:
    """Check `given` and fill in the defaults.

    Raises:
        HfdError: unknown key, wrong type, value outside its list or range, no weights, or values
            that Gander's grammar does not allow together.
    """
    refuse_windows(given)
    settings = make_settings(Settings, given)
    for name in ("model_path", "repo_path"):
        if not getattr(settings, name):
            raise wrong_setting(f"settings.{name}", "", "Give a folder (docs/gander.md)")
    parts = [settings.thinker_path, settings.talker_path]
    if bool(settings.gander_path) == any(parts) or (any(parts) and not all(parts)):
        raise wrong_setting(
            "settings.gander_path",
            settings.gander_path,
            "Give the release's folder, or thinker_path and talker_path instead of it",
        )
    if settings.tokens_per_unit < settings.text_tokens + 3:
        raise wrong_setting(
            "settings.tokens_per_unit",
            settings.tokens_per_unit,
            "Write at least text_tokens + 3: the action, the text, the turn's and the second's end",
        )
    usual = {field.name: field.default for field in fields(settings)}
    for name in NO_EFFECT:
        if getattr(settings, name) != usual[name]:
            value = getattr(settings, name)
            raise wrong_setting(f"settings.{name}", value, "Leave it out: Gander has no such thing")
    return settings
