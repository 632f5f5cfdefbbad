"""The schemas say what the readers do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator
from referencing import Registry, Resource

from hfd.data.manifest import read_manifest
from hfd.errors import HfdError

from .conftest import Raw, WriteManifest, manifest_row

FOLDER = Path(__file__).parents[2] / "workflow/schemas"
NAMES = ("manifest_row", "raw_row", "adapter", "check")
SCHEMAS = {
    f"{name}.schema.yaml": yaml.safe_load((FOLDER / f"{name}.schema.yaml").read_text("utf-8"))
    for name in NAMES
}
REGISTRY = Registry().with_resources(
    (name, Resource.from_contents(schema)) for name, schema in SCHEMAS.items()
)


def validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(SCHEMAS[f"{name}.schema.yaml"], registry=REGISTRY)


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_a_valid_schema(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[f"{name}.schema.yaml"])


@pytest.mark.parametrize(
    "row",
    [
        manifest_row("a"),
        manifest_row("-dash 猫 it's 100%", extra=[1]),
        manifest_row("x", sample_id=None, id="b"),
        manifest_row("a", adapter=None),
        manifest_row("a", sample_id=None),
        manifest_row("../x"),
        manifest_row("a/b"),
        manifest_row("{a}"),
        manifest_row(""),
        manifest_row(" a"),
        manifest_row("a."),
        manifest_row("a\tb"),
        manifest_row("a", sample_id=7),
        manifest_row("x" * 201),
        manifest_row("a", task=" "),
        manifest_row("a", video="/data/videos/a.mp4"),
        manifest_row("a", video="data/../data/videos/a.mp4"),
        manifest_row("a", video="data/videos/\x07.mp4"),
        manifest_row("a", video=3),
        manifest_row("a", duration_seconds=0),
        manifest_row("a", duration_seconds=-2.5),
        manifest_row("a", duration_seconds="12"),
        manifest_row("a", duration_seconds=True),
        manifest_row("a", duration_seconds=1e6),
        manifest_row("a", duration_seconds=12),
    ],
    ids=repr,
)
def test_schema_and_reader_agree_on_a_manifest_row(
    row: dict[str, Any], write_manifest: WriteManifest, tmp_path: Path
) -> None:
    try:
        read_manifest(write_manifest(row), tmp_path)
        accepted = True
    except HfdError:
        accepted = False
    assert validator("manifest_row").is_valid(row) == accepted


def test_raw_rows_adapters_and_manifest_rows_fit_their_schemas(raw: Raw) -> None:
    validator("raw_row").validate(raw.row("甲"))
    assert not validator("raw_row").is_valid(raw.row(duplex={"inputs": []}))
    assert not validator("raw_row").is_valid(raw.row(first={"start": None}))
    _, adapter = raw.compile(raw.row())
    validator("adapter").validate(adapter)
    adapter["events"][0].pop("end")
    assert not validator("adapter").is_valid(adapter)
    validator("adapter").validate(json.loads('{"events": [{"note": "no time"}], "x": 1}'))
