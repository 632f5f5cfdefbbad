"""The settings of config/models.yaml, checked before anything is loaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from hfd.models.settings import Range


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

    endpoint_ms: Annotated[float, Range(100, 10_000)] = 700
    onset_ms: Annotated[float, Range(32, 2_000)] = 200
    vad_threshold: Annotated[float, Range(0.2, 0.95)] = 0.5
    min_logprob: Annotated[float, Range(-10, 0)] = -0.8
