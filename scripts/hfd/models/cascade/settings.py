"""The settings of config/models.yaml, checked before anything is loaded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from hfd.errors import HfdError


@dataclass(frozen=True)
class Settings:
    """How the agent takes turns.

    Attributes:
        endpoint_ms: silence that ends the user's turn.
        onset_ms: speech that counts as the user speaking: it opens a turn, and it interrupts the
            agent while the agent is audible. Shorter sounds are ignored.
        vad_threshold: speech probability from which a frame is speech; it stays speech until the
            probability falls 0.15 below.
        min_logprob: mean log probability per token below which the agent says that it did not
            understand.
    """

    endpoint_ms: float = 700
    onset_ms: float = 200
    vad_threshold: float = 0.5
    min_logprob: float = -0.8


_LIMITS = {
    "endpoint_ms": (100, 10_000),
    "onset_ms": (32, 2_000),
    "vad_threshold": (0.2, 0.95),
    "min_logprob": (-10, 0),
}


def read_settings(settings: Mapping[str, Any]) -> Settings:
    """Check the settings of one model.

    Raises:
        HfdError: an unknown key, or a value that is no number in its range.
    """
    known = [field.name for field in fields(Settings)]
    for name, value in settings.items():
        if name not in known:
            raise _error(name, "is no setting of cascade", f"Use one of {', '.join(known)}")
        low, high = _LIMITS[name]
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not low <= value <= high:
            raise _error(name, f"is {value!r}", f"Use a number from {low} to {high}")
    return Settings(**settings)


def _error(name: str, problem: str, remedy: str) -> HfdError:
    return HfdError(problem, file="config/models.yaml", field=f"settings.{name}", remedy=remedy)
