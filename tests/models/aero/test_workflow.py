"""`snakemake results_aero`: servers started inside the job, results published and audited."""

from __future__ import annotations

import json

import pytest

from tests.models.aero.conftest import pair_settings
from tests.workflow.desk import Desk

pytestmark = pytest.mark.realtime


@pytest.fixture
def desk(tmp_path):
    """A working folder with two samples and Aero with the pair as children of its job."""
    desk = Desk(tmp_path)
    desk.add_samples(["a", "乙"], pictures=16)
    settings = pair_settings(url="ws://127.0.0.1:{port}/v1/aero/realtime?slots=12-20")
    desk.models["aero"] = {
        "module": "aero",
        "voice_origin": "streaming_tts",
        "load_minutes": 0,
        "shard_minutes": 10,
        "resources": {"mem_mb": 500},
        "settings": settings,
    }
    return desk


def test_snakemake_runs_the_pair_inside_its_job_and_publishes_what_the_team_expects(desk):
    desk.run("results_aero")
    assert desk.results("aero") == {"a", "乙"}
    result = json.loads(desk.result("aero", "乙", "result.json").read_text())
    assert result["text"] and result["audio_arrivals"] and result["qend"] == 0.9
    assert result["voice_origin"] == "streaming_tts" and result["clock"] == "arrival"
    wav = desk.result("aero", "乙", "assistant_audio.wav").read_bytes()
    assert desk.result("aero", "乙", "side/assistant_stream.wav").read_bytes() == wav
    audit = desk.run("audit_aero")
    verdict = next(line for line in audit.splitlines() if line.startswith("aero: rules:"))
    assert " pass" in verdict and " fail" not in verdict
