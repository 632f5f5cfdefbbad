"""Where a model's module lies, found without importing anything."""

from __future__ import annotations

import importlib.machinery
import sys
from pathlib import Path

_OURS = Path(__file__).parent


def module_name(module: str) -> str:
    """The name to import: ``hfd.models.<module>`` where there is one, else the user's own."""
    ours = _OURS / module
    return f"hfd.models.{module}" if _is_module(ours) else module


def module_source(module: str, folder: str | Path) -> Path | None:
    """File or package of a module that lies outside of this repository; None for one of ours.

    Args:
        module: as in config/models.yaml; dotted: the outermost package is given.
        folder: where a user's module is looked for first; then on Python's own path.
    """
    if module_name(module) != module:
        return None
    outermost = module.partition(".")[0]
    found = importlib.machinery.PathFinder.find_spec(outermost, [str(folder), *sys.path])
    if found is None:
        return None
    if found.submodule_search_locations:
        return Path(next(iter(found.submodule_search_locations)))
    return Path(found.origin) if found.origin else None


def add_to_path(folder: str | Path) -> None:
    """Let Python find a user's modules in `folder`."""
    path = str(Path(folder).resolve())
    if path not in sys.path:
        sys.path.insert(0, path)


def _is_module(path: Path) -> bool:
    return path.with_name(f"{path.name}.py").is_file() or (path / "__init__.py").is_file()
