"""A model as config/models.yaml states it, and the fingerprint of what it makes of a sample.

Processes that the workflow starts read the configuration from an environment variable: it may hold
what belongs on no command line, in no log and in none of Snakemake's records.
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from hfd.errors import HfdError
from hfd.files import canonical_json, sha256_bytes
from hfd.secrets import without_secrets

CONFIG_VARIABLE = "HFD_CONFIG"


@dataclass(frozen=True)
class ModelSpec:
    """What decides a model's answers.

    Attributes:
        name: its name in config/models.yaml.
        module: module under ``hfd.models``, or one that is found in `module_path`.
        settings: its settings.
        seed: seed of the run.
        voice_origin: what the model must declare; the worker refuses another.
        weights: files and folders whose content is part of the fingerprint.
        rerun_on: what else makes a result stale; ``code``: another version of the code.
        module_path: folder in which a module of the user's is found.
        sessions: files that one worker runs side by side; above 1 its times are shared ones, so
            the number makes another result.
    """

    name: str
    module: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = 0
    voice_origin: str | None = None
    weights: tuple[str, ...] = ()
    rerun_on: tuple[str, ...] = ()
    module_path: str = "config"
    sessions: int = 1

    @classmethod
    def from_config(cls, config: Mapping[str, Any], name: str) -> ModelSpec:
        """The spec of a model in the checked configuration (its ``models`` included)."""
        entry = config["models"][name]
        return cls(
            name=name,
            module=entry["module"],
            settings=entry["settings"],
            seed=config["seed"],
            voice_origin=entry["voice_origin"],
            weights=tuple(entry["weights"]),
            rerun_on=tuple(config["rerun_on"]),
            module_path=entry["module_path"],
            sessions=entry["sessions"],
        )

    @classmethod
    def from_environment(cls, name: str) -> ModelSpec:
        """The spec of a model in the configuration of the run that started this process.

        Raises:
            HfdError: this process was not started by the workflow, or there is no such model.
        """
        config = environment_config()
        if name not in config["models"]:
            raise HfdError(f"has no model {name!r}", file="config/models.yaml", field="models")
        return cls.from_config(config, name)


def environment_config() -> dict[str, Any]:
    """The checked configuration of the run that started this process, from ``$HFD_CONFIG``.

    Raises:
        HfdError: there is none.
    """
    try:
        return json.loads(os.environ[CONFIG_VARIABLE])
    except (KeyError, ValueError) as error:
        raise HfdError(
            "holds no configuration",
            field=f"${CONFIG_VARIABLE}",
            remedy="Start it through snakemake, which sets it",
        ) from error


@dataclass(frozen=True)
class Recipe:
    """The model's share of every fingerprint: the spec with its weights hashed."""

    module: str
    settings: Mapping[str, Any]
    seed: int
    weights: Mapping[str, str]
    sessions: int = 1

    @functools.cached_property
    def _settings(self) -> dict[str, Any]:
        """Settings as they may be written down; the same for every sample of a model."""
        return without_secrets(self.settings)

    def record(self) -> dict[str, Any]:
        """What no other field of provenance.json says of the recipe."""
        return {"weights": dict(self.weights), "code": None, **self._shared()}

    def fingerprint(
        self, video_sha256: str, adapter_sha256: str | None, code: str | None = None
    ) -> str:
        """SHA-256 of what makes a result valid (docs/formats.md).

        Args:
            video_sha256, adapter_sha256: hashes of the sample's files.
            code: only to recognise results of earlier versions, whose fingerprint held it.
        """
        parts = {
            "schema": "hfd-fingerprint/1",
            "video_sha256": video_sha256,
            "adapter_sha256": adapter_sha256,
            "module": self.module,
            "settings": self._settings,
            "seed": self.seed,
            "weights": dict(self.weights),
            "code": code,
            **self._shared(),
        }
        return sha256_bytes(canonical_json(parts).encode())

    def _shared(self) -> dict[str, int]:
        """Said only of workers that share their card, so that no other fingerprint changes."""
        return {"sessions": self.sessions} if self.sessions > 1 else {}
