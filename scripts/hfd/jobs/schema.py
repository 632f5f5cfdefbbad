"""The configuration against its JSON Schemas, with their defaults filled in.

As snakemake.utils.validate does it, but a schema is read once for all models: reading it took most
of the time in which the Snakefile is parsed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator, ValidationError, validators
from jsonschema.exceptions import best_match

from hfd.errors import HfdError

_check_properties = Draft202012Validator.VALIDATORS["properties"]


class SchemaFile:
    """A schema in a YAML file."""

    def __init__(self, path: Path) -> None:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        schema = yaml.load(path.read_text(encoding="utf-8"), loader)
        self._validator = _Filling(schema)

    def fill(self, value: Any, file: str, *place: str) -> None:
        """Check `value` and write the defaults of what it lacks into it.

        Args:
            value: as it was read.
            file: where it was read from, for messages.
            place: keys above it in that file.

        Raises:
            HfdError: it does not fit; names the field.
        """
        found = best_match(self._validator.iter_errors(value))
        if found is not None:
            field = ".".join(map(str, (*place, *found.absolute_path)))
            raise HfdError(found.message, file=file, field=field, remedy="See config/README.md")


def _fill_properties(
    validator: Any, properties: Mapping[str, Any], instance: Any, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    """The keyword ``properties``, which first sets the defaults of keys that are not there."""
    if isinstance(instance, dict):
        for name, subschema in properties.items():
            if "default" in subschema:
                instance.setdefault(name, _copy(subschema["default"]))
    yield from _check_properties(validator, properties, instance, schema)


def _copy(default: Any) -> Any:
    return type(default)(default) if isinstance(default, dict | list) else default


_Filling = validators.extend(Draft202012Validator, {"properties": _fill_properties})
