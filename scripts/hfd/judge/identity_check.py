"""A13 and A16: fingerprint, seed and names, computed again from what provenance.json says."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from hfd.judge.documents import Document
from hfd.judge.findings import PROVENANCE, Finding

_RECIPE = ("seed", "weights", "code")


def sample_seed(run_seed: int, sample_id: str) -> int:
    """A sample's own seed (docs/formats.md)."""
    digest = hashlib.sha256(f"{run_seed}:{sample_id}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def fingerprint(provenance: dict[str, Any]) -> str:
    """The hash of what makes the result valid (docs/formats.md)."""
    recipe, model, made_of = (provenance[key] for key in ("recipe", "model", "input"))
    parts = {
        "schema": "hfd-fingerprint/1",
        "video_sha256": made_of["video_sha256"],
        "adapter_sha256": made_of["adapter_sha256"],
        "module": model["module"],
        "settings": model["settings"],
        **{name: recipe[name] for name in _RECIPE},
        **{name: recipe[name] for name in ("sessions",) if name in recipe},
    }
    line = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(line.encode()).hexdigest()


def check_identity(provenance: Document) -> list[Finding]:
    """Seed and fingerprint must follow from the rest; nothing is said of an older file."""
    value = provenance.value
    if "recipe" not in value:
        return []
    told = {
        ("model", "seed"): sample_seed(value["recipe"]["seed"], value["sample_id"]),
        ("fingerprint",): fingerprint(value),
    }
    return [
        Finding(
            "A13",
            PROVENANCE,
            f"{'.'.join(path)} is not that of the video, adapter, settings, seed and weights that "
            "it names",
            provenance.line_of(*path),
        )
        for path, expected in told.items()
        if _at(value, path) != expected
    ]


def _at(value: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        value = value[key]
    return value
