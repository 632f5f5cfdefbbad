"""The entries that are shipped: each makes its model, and promises what the entry says."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
import yaml

from hfd.models.realtime import RealtimeModel
from hfd.models.realtime.settings import Settings
from hfd.models.sockets.failures import FAILURES

DOCS = (Path(__file__).parents[3] / "docs" / "realtime.md").read_text("utf-8")
ENTRIES = {
    name: entry
    for name, entry in yaml.safe_load(
        (Path(__file__).parents[3] / "config" / "models.yaml").read_text("utf-8")
    )["models"].items()
    if entry["module"] == "realtime"
}


@pytest.mark.parametrize("name", ENTRIES)
def test_an_entry_makes_its_model_and_is_in_no_plain_run(name):
    entry = ENTRIES[name]
    caps = RealtimeModel(entry["settings"]).capabilities
    assert caps.voice_origin == entry["voice_origin"]
    assert entry["in_all"] is False and entry["resources"]["gpu"] == caps.gpus == 0
    assert not any("key" in key and value for key, value in entry["settings"].items())


def test_every_service_of_the_issue_has_an_entry():
    assert {entry["settings"]["dialect"] for entry in ENTRIES.values()} == {
        "vllm_omni", "openai", "openai_live", "qwen", "gemini", "moshi"
    }  # fmt: skip


def test_every_setting_and_every_failure_is_documented():
    assert [f.name for f in fields(Settings) if f"`{f.name}`" not in DOCS] == ["servers"]
    assert "`servers: {server:" in DOCS
    known = FAILURES.keys() - {"incomplete"}  # of Aero's speech
    assert [n for n in known if f"`server_{n}`" not in DOCS and f"`{n}`" not in DOCS] == []
