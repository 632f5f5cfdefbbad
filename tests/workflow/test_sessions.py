"""Several sessions in one worker: the same outputs as alone, shared times that say so."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from hfd.errors import HfdError
from hfd.files import read_json
from hfd.jobs.preflight import preflight
from hfd.jobs.spec import ModelSpec
from hfd.jobs.standalone import run_standalone
from hfd.judge.reruns import difference, outputs_of
from hfd.judge.trace import read_trace
from tests.workflow.desk import HANGS_S, MODELS_FOR_TESTS, REPO

NAMES = [f"s{n}" for n in range(8)]


@pytest.fixture
def work(desk, monkeypatch):
    """Run the test model over eight samples; further settings, and which samples misbehave."""
    monkeypatch.syspath_prepend(MODELS_FOR_TESTS)
    desk.add_samples(NAMES, pictures=16)

    def settings(**more):
        files = {name: str(desk.path / f"beeper.{name}") for name in ("calls", "faults")}
        return {"pace_s": 0.02, **files, **more}

    def run(sessions, out="out", faults=None, **more):
        desk.faults("beeper", **(faults or {}))
        spec = ModelSpec("beeper", "testmodels.beeper", settings(**more), sessions=sessions)
        return run_standalone(spec, arguments(desk, out))

    run.settings = settings
    run.desk = desk
    return run


def arguments(desk, out):
    import argparse

    from hfd.jobs.options import add_common_options

    parser = argparse.ArgumentParser()
    add_common_options(parser)
    manifest, root = desk.path / "data" / "manifest.jsonl", desk.path
    given = ["--manifest", manifest, "--output-root", desk.path / out, "--root", root]
    return parser.parse_args(list(map(str, given)))


def of(desk, out, name):
    """A result's folder, its provenance and its result."""
    folder = desk.path / out / name
    return folder, read_json(folder / "provenance.json"), read_json(folder / "result.json")


def error_of(desk, name, out="out"):
    return json.loads((desk.path / out / ".hfd" / "errors" / f"{name}.json").read_text())


def test_four_sessions_say_what_one_says_and_call_their_times_shared(work, monkeypatch):
    monkeypatch.setattr("testmodels.beeper.HOLD_LIMIT_S", 1)
    desk = work.desk
    assert work(1, "alone") == 0 and work(4, "shared", {"hold": NAMES[:4]}) == 0
    assert desk.calls("beeper", "load") == {"": 2}
    together = []
    for name in NAMES:
        folder, provenance, result = of(desk, "alone", name)
        beside, shared, other = of(desk, "shared", name)
        assert difference(outputs_of(folder), outputs_of(beside)) == []
        assert "sessions" not in result and "shared" not in provenance
        assert "sessions" not in provenance["recipe"] | read_trace(folder / "trace.jsonl.gz").header
        assert provenance["contract"]["max_sessions"] == 1
        assert other["sessions"] == shared["recipe"]["sessions"] == 4
        assert read_trace(beside / "trace.jsonl.gz").header["sessions"] == 4
        assert shared["fingerprint"] != provenance["fingerprint"]
        together.append(shared["shared"]["most_beside"])
        assert 0 <= shared["shared"]["mean_beside"] <= shared["shared"]["most_beside"] <= 3
    assert max(together) == 3  # they did run side by side


def test_shared_and_own_results_are_never_taken_for_each_other(work, capsys):
    assert work(1) == 0
    capsys.readouterr()
    assert work(4) == 0
    assert "kept" not in capsys.readouterr().out
    assert work(4) == 0
    assert capsys.readouterr().out.count("kept") == len(NAMES)


def test_a_sample_that_fails_in_a_session_costs_itself_alone(work):
    assert work(4, faults={"error": ["s1", "s5"]}) == 1
    done = {path.parent.name for path in (work.desk.path / "out").glob("*/result.json")}
    assert done == set(NAMES) - {"s1", "s5"}
    assert error_of(work.desk, "s1")["deaths"] == {"by hand": 0}
    assert "by hand" in error_of(work.desk, "s5")["deaths"]


def test_a_broken_device_ends_all_sessions_and_who_ran_beside_it_runs_alone_next(work, monkeypatch):
    monkeypatch.setattr("testmodels.beeper.HOLD_LIMIT_S", 1)
    everyone = {"hold": ["s0", "s1", "s2"], "cuda": ["s3"]}
    with pytest.raises(HfdError, match="beyond use: CUDA error"):
        work(4, faults=everyone)
    for name in NAMES[:4]:
        assert error_of(work.desk, name)["deaths"] == {"by hand": 1}
    assert "ended under another sample beside it" in error_of(work.desk, "s0")["error"]
    assert not list((work.desk.path / "out" / ".hfd").rglob("*.part*"))
    assert not list((work.desk.path / "out" / ".hfd" / "leases").glob("*.json"))
    assert work(4) == 0
    for name in NAMES:
        beside = of(work.desk, "out", name)[1]["shared"]["most_beside"]
        assert (beside == 0) == (name in NAMES[:4])


def test_more_sessions_than_the_module_runs_are_refused_by_name(work):
    spec = ModelSpec("beeper", "testmodels.beeper", work.settings(most_sessions=1), sessions=4)
    wrong = [line.text for line in preflight(spec, 0, None, False) if line.ok is False]
    assert wrong == [
        "config/models.yaml: models.beeper.sessions: is 4, its module runs at most 1 at a time."
        " Leave it out"
    ]
    with pytest.raises(HfdError, match=r"models.beeper.sessions"):
        work(4, most_sessions=1)


def started(work, hold=()):
    """The model by hand in a process of its own, with four sessions, once all to hold run."""
    desk = work.desk
    desk.faults("beeper", hold=list(hold))
    entry = {"module": "testmodels.beeper", "sessions": 4, "settings": work.settings()}
    (desk.path / "models.yaml").write_text(json.dumps({"models": {"beeper": entry}}))
    command = [sys.executable, REPO / "scripts" / "run_model.py", "--model", "beeper"]
    command += ["--models-file", "models.yaml", "--output-root", "out", "--manifest"]
    process = subprocess.Popen(
        [*command, "data/manifest.jsonl"],
        cwd=desk.path,
        env=os.environ | {"PYTHONPATH": str(MODELS_FOR_TESTS)},
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + HANGS_S
    while not set(hold) <= set(desk.calls("beeper")) and time.monotonic() < deadline:
        time.sleep(0.02)
    return process


def test_sigterm_drops_what_is_in_flight_and_keeps_what_is_finished(work):
    process = started(work, hold=["s3", "s4", "s5", "s6"])
    process.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    work.desk.faults("beeper")  # a session looks up at its next unit
    _, said = process.communicate(timeout=HANGS_S)
    assert process.returncode == 143 and "stopped; what is finished stays" in said
    done = {path.parent.name for path in (work.desk.path / "out").glob("*/result.json")}
    assert done == {"s0", "s1", "s2"}
    hidden = work.desk.path / "out" / ".hfd"
    assert not list(hidden.glob("leases/*.json")) and not list(hidden.glob("errors/*.json"))
    started(work).communicate(timeout=HANGS_S)
    assert set(work.desk.calls("beeper", "end").values()) == {1}


def test_kill_9_costs_what_was_in_flight_and_the_suspects_run_alone(work):
    process = started(work, hold=["s2", "s3", "s4", "s5"])
    process.kill()
    process.communicate()
    work.desk.faults("beeper")
    started(work).communicate(timeout=HANGS_S)
    for name in NAMES:
        beside = of(work.desk, "out", name)[1]["shared"]["most_beside"]
        assert beside == 0 or name not in NAMES[2:6]
    assert set(work.desk.calls("beeper", "end").values()) == {1}


def test_the_workflow_runs_a_model_with_several_sessions_and_says_that_times_are_shared(desk):
    desk.add_samples(NAMES[:4], pictures=16)
    desk.add_model("loud", pace_s=0.02)
    desk.models["loud"]["sessions"] = 2
    said = desk.run("results_loud")
    assert "loaded in 0.0 s, 2 sessions: times are shared" in said
    assert "loud: done several at a time in one worker, so their times are shared (4): s0" in said
    assert read_json(desk.result("loud", "s0"))["sessions"] == 2
    del desk.models["loud"]["sessions"]
    assert "loud: stale: sessions changed (4): s0" in desk.run("-n", "results_loud")
    desk.models["loud"]["sessions"] = 9
    refused = desk.run("-n", "results_loud", ok=False)
    assert "models.loud.sessions: is 9, its module runs at most 8 at a time" in refused
