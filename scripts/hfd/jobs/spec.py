"""A model as config/models.yaml states it, and the fingerprint of what it makes of a sample."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hfd.files import canonical_json, sha256_bytes


@dataclass(frozen=True)
class ModelSpec:
    """What decides a model's answers; passed to the worker as one line of JSON.

    Attributes:
        name: its name in config/models.yaml.
        module: module under ``hfd.models``, or a dotted path.
        settings: its settings.
        seed: seed of the run.
        voice_origin: what the model must declare; the worker refuses another.
        weights: files and folders whose content is part of the fingerprint.
        rerun_on: what else makes a result stale; ``code``: another version of this repository.
    """

    name: str
    module: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    voice_origin: str | None = None
    weights: tuple[str, ...] = ()
    rerun_on: tuple[str, ...] = ()

    @classmethod
    def from_json(cls, text: str) -> ModelSpec:
        """The spec that `to_json` wrote."""
        value = json.loads(text)
        return cls(
            **value | {"weights": tuple(value["weights"]), "rerun_on": tuple(value["rerun_on"])}
        )

    def to_json(self) -> str:
        """One line of JSON; equal specs give equal lines."""
        return canonical_json(dataclasses.asdict(self))


@dataclass(frozen=True)
class Recipe:
    """The model's share of every fingerprint: the spec with its weights hashed."""

    module: str
    settings: Mapping[str, Any]
    seed: int
    weights: Mapping[str, str]
    code: str | None = None

    def record(self) -> dict[str, Any]:
        """What no other field of provenance.json says of the recipe."""
        return {"weights": dict(self.weights), "code": self.code}

    def fingerprint(self, video_sha256: str, adapter_sha256: str | None) -> str:
        """SHA-256 of what makes a result valid (docs/formats.md)."""
        parts = {
            "schema": "hfd-fingerprint/1",
            "video_sha256": video_sha256,
            "adapter_sha256": adapter_sha256,
            **dataclasses.asdict(self),
        }
        return sha256_bytes(canonical_json(parts).encode())
