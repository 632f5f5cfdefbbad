"""Questions asked of results afterwards, as typed: compare two runs, disturb a server."""

import csv
import json

import pytest

from tests.models.example.contract import peer
from tests.workflow.desk import REPO, Desk

SAMPLES = ["一 1", "two", "three"]


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory):
    """Results that were kept, and new ones with another setting, in which a sample failed."""
    desk = Desk(tmp_path_factory.mktemp("runs"))
    desk.add_samples(SAMPLES)
    desk.add_model("loud")
    desk.run("results_loud")
    (desk.path / "results" / "loud").rename(desk.path / "old run")
    desk.add_model("loud", speak=False)
    desk.faults("loud", error=["two"])
    desk.run("results_loud", ok=False)
    return desk


def test_two_runs_are_compared_with_what_changed_and_what_flipped(two_runs):
    said = two_runs.run("compare", "--config", "first=old run", "second=results/loud")
    assert "settings.speak: True -> False" in said
    assert f"1 of {len(SAMPLES)} samples have another outcome" in said
    out = two_runs.path / "results" / "compare"
    with (out / "flipped.csv").open(encoding="utf-8") as table:
        rows = list(csv.DictReader(table))
    assert [(row["sample_id"], row["second"]) for row in rows] == [("two", "missing")]
    summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    assert summary["models"] == ["first", "second"] == list(summary["cards"])
    assert summary["about"]["compared"] == {"first": "old run", "second": "results/loud"}
    assert (out / "index.html").is_file()
    page = (out / "samples" / "three.js").read_text(encoding="utf-8")
    assert page.count('"player":"players/') == 2  # side by side
    assert (
        two_runs.run("compare", "--config", "first=old run", "second=results/loud").count("report:")
        == 1
    )


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ([], "error: .: first: is no folder"),
        (["first=old run", "second=results/lout"], "error: results/lout: second: is no folder"),
    ],
)
def test_a_folder_that_is_not_there_is_one_line(two_runs, given, line):
    said = two_runs.run("compare", *(["--config", *given] if given else []), ok=False)
    assert [text for text in said.splitlines() if text.startswith(line)], said
    assert "Traceback" not in said


@pytest.mark.realtime
def test_a_server_is_fed_late_and_without_frames_by_a_recorded_schedule(desk):
    desk.add_samples(["one", "two"], pictures=16)
    with peer(desk.path) as settings:
        desk.models["parrot"] = {
            "module": "parrot_socket",
            "module_path": str(REPO / "docs" / "examples"),
            "voice_origin": "native_talker",
            "settings": settings,
        }
        desk.run("results_parrot")
        before = {path: path.read_bytes() for path in (desk.path / "results").rglob("*.json")}
        desk.run("jitter_probe_parrot")
        desk.run("audit_parrot")
    probe = desk.path / "work/audit/probes/jitter/parrot.json"
    found = json.loads(probe.read_text(encoding="utf-8"))["samples"]
    assert set(found) == {"one", "two"}
    for one in found.values():
        assert one["status"] == "ok" and len(one["late_s"]) == 32 and 0 < max(one["late_s"]) <= 0.2
    summary = json.loads((desk.path / "results/audit_parrot/summary.json").read_text("utf-8"))
    assert summary["reruns"]["parrot"]["jitter"] == found
    assert all(path.read_bytes() == kept for path, kept in before.items())
