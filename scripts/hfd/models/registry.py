"""Find a model by the name of its module."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from hfd.duplex.model import DuplexModel
from hfd.errors import HfdError


def create_model(module: str, settings: Mapping[str, Any], name: str | None = None) -> DuplexModel:
    """Make the model of ``hfd.models.<module>`` with its settings checked and nothing loaded.

    Args:
        module: a dotted one is a full path: a model that lives outside of this repository.
        settings: what the model's own dataclass of settings knows.
        name: the model's name in config/models.yaml, if its settings come from there.

    Raises:
        HfdError: no such model, one of its packages is missing, or a setting is wrong.
    """
    path = module if "." in module else f"hfd.models.{module}"
    try:
        found = importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name and path.startswith(error.name):
            raise HfdError(
                f"there is no model module {module!r}",
                file="config/models.yaml",
                field="module",
                remedy="Use the name of a file in scripts/hfd/models, or a dotted module path",
            ) from error
        raise HfdError(
            f"model {module!r} needs the Python package {error.name!r}, which is not installed",
            file="config/models.yaml",
            field="python",
            remedy=f"Name an interpreter that has envs/{module}.yaml, or use --sdm conda",
        ) from error
    try:
        return found.MODEL(settings)
    except HfdError as error:
        if name is None or not (error.field or "").startswith("settings"):
            raise
        raise HfdError(
            error.problem,
            file=error.file or "config/models.yaml",
            field=f"models.{name}.{error.field}",
            remedy=error.remedy,
        ) from error
