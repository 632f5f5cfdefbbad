"""Find a model by the name of its module."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from hfd.duplex.model import DuplexModel
from hfd.errors import HfdError
from hfd.models.locate import add_to_path, module_name


def create_model(
    module: str, settings: Mapping[str, Any], name: str | None = None, folder: str = "config"
) -> DuplexModel:
    """Make the model of ``hfd.models.<module>`` with its settings checked and nothing loaded.

    Args:
        module: one of this package, or a (dotted) one of the user's.
        settings: what the model's own dataclass of settings knows.
        name: the model's name in config/models.yaml, if its settings come from there.
        folder: where a user's module is found, besides PYTHONPATH.

    Raises:
        HfdError: no such model, one of its packages is missing, or a setting is wrong.
    """
    path = module_name(module)
    if path == module:
        add_to_path(folder)
    try:
        found = importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name and path.startswith(error.name):
            raise HfdError(
                f"there is no model module {module!r}",
                file="config/models.yaml",
                field="module",
                remedy="Use the name of a module in scripts/hfd/models, or put yours beside the"
                " configuration or into the folder that module_path names",
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


def resolved_settings(model: DuplexModel) -> Mapping[str, Any]:
    """A model's settings with every default, as JSON values; ``{}`` if it keeps no dataclass."""
    for held in vars(model).values():
        if (
            is_dataclass(held)
            and not isinstance(held, type)
            and type(held).__name__.endswith("Settings")
        ):
            return json.loads(json.dumps(asdict(held), default=str))
    return {}
