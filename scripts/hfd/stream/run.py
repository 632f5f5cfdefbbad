"""What the samples of one worker share, and the count of what one sample was sent."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hfd.duplex.model import Identity
from hfd.stream.company import Company


@dataclass(frozen=True)
class Run:
    """What all samples of one worker share.

    Attributes:
        name: the model's name in config/models.yaml.
        module: its module under ``hfd.models``.
        settings: its settings.
        seed: seed of the run; each sample derives its own from it.
        identity: what `load` said.
        recipe: the rest of what the fingerprint is made of: ``weights`` (hash by name), ``code``.
        max_lag_s: arrival clock: a unit sent later than this after its deadline fails the sample.
        resolved: its settings with every default.
        source: file or package of a module from outside of this repository.
        company: the samples that run side by side, or None where each has the model to itself.
    """

    name: str
    module: str
    settings: Mapping[str, Any]
    seed: int
    identity: Identity
    recipe: Mapping[str, Any] = field(default_factory=lambda: {"weights": {}, "code": None})
    max_lag_s: float = 0.5
    resolved: Mapping[str, Any] = field(default_factory=dict)
    source: Path | None = None
    company: Company | None = None

    @property
    def sessions(self) -> int:
        """Samples that the worker runs side by side."""
        return self.company.sessions if self.company else 1

    def shared(self) -> dict[str, int]:
        """What header and result say of times that are not the model's own."""
        return {"sessions": self.sessions} if self.company else {}

    def sample_seed(self, sample_id: str) -> int:
        """A seed that depends on the run's seed and the sample alone, below 2**31."""
        digest = hashlib.sha256(f"{self.seed}:{sample_id}".encode()).digest()
        return int.from_bytes(digest[:4], "big") >> 1


@dataclass
class InputLog:
    """What was sent, counted while it is sent."""

    units: int = 0
    samples: int = 0
    frames: int = 0
    pad_samples: int = 0
    lags_ms: list[float] = field(default_factory=list)
    compute_s: float = 0.0
    pcm_hash: Any = field(default_factory=hashlib.sha256)
    frames_hash: Any = field(default_factory=hashlib.sha256)
