"""What would keep a model from starting is told at once, and fails once."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from hfd.jobs.preflight import preflight
from hfd.jobs.spec import ModelSpec
from tests.workflow.desk import MODELS_FOR_TESTS


@pytest.fixture
def lines(monkeypatch, tmp_path):
    """What a look at a model says, by whether it lets it start."""
    monkeypatch.syspath_prepend(MODELS_FOR_TESTS)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)

    def look(module="testmodels.beeper", settings=None, weights=(), gpus=0, pins=()):
        environment = tmp_path / "model.yaml"
        listed = "".join(f"\n      - {pin}" for pin in pins)
        environment.write_text(f"dependencies:\n  - python=3.11\n  - pip:{listed or ' []'}\n")
        spec = ModelSpec("loud", module, settings or {}, weights=tuple(weights))
        found = list(preflight(spec, gpus, environment, scheduled=False))
        return {ok: [line.text for line in found if line.ok is ok] for ok in (True, False, None)}

    return look


def test_a_model_that_can_start_has_no_problem(lines):
    found = lines(pins=["numpy[extra]>=1"])
    assert found[False] == [] and found[None] == []


def test_everything_that_is_wrong_is_told_at_once(lines, tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        servers = {"tts": {"command": ["no-such-program", "serve.py"], "port": port}}
        weights = [str(tmp_path / "model.bin")]
        found = lines(
            "nowhere.model", {"servers": servers}, weights, 9, ["numpy==0.1", "absent==1"]
        )
    wrong = "\n".join(found[False])
    for said in (
        "there is no model module 'nowhere.model'",
        "9 GPUs are needed, this machine has",
        "model.bin: there is no such file",
        "no-such-program is no program here",
        "there is no serve.py",
        f"port {port} is taken",
    ):
        assert said in wrong
    (note,) = found[None]
    assert "numpy is " in note and "not 0.1" in note and "absent is not installed" in note


def test_a_models_own_look_is_part_of_it(lines, monkeypatch, tmp_path):
    for name in ("server_root", "thinker_weights"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name.upper(), str(tmp_path / name))
    stack = {"server_root": "$SERVER_ROOT", "thinker_weights": "$THINKER_WEIGHTS"}
    stack |= {"talker_weights": str(tmp_path / "absent"), "python": "no-such-python"}
    wrong = lines("duplexomni", {"stack": stack})[False]
    assert wrong == [
        f"settings.stack.talker_weights: there is no folder {tmp_path / 'absent'}",
        "settings.stack.python: no-such-python is no program here",
    ]


def test_a_model_that_cannot_be_made_fails_in_the_dry_run_and_before_any_job(desk):
    desk.add_samples(["a", "b", "c"])
    desk.add_model("loud", tempo=3)
    for options in (["-n"], []):
        output = desk.run("results_loud", *options, ok=False)
        assert "models.loud.settings.tempo: is no setting" in output
        assert "Traceback" not in output
    assert "infer.py" not in output and output.count("is no setting") <= 3
    desk.models["loud"]["settings"].pop("tempo")
    desk.models["loud"]["python"] = "no/such/python"
    output = desk.run("results_loud", "-n", ok=False)
    assert "models.loud.python: is 'no/such/python', which is no program here" in output


def test_a_model_that_cannot_load_fails_once(desk):
    desk.add_samples(["a", "b"])
    desk.add_model("loud", broken_start="the weights are of another model")
    output = desk.run("results_loud", ok=False)
    assert desk.calls("loud", "load").total() == 1  # one shard of two samples
    assert "the weights are of another model" in output
    assert "nothing was tried again" in output
    desk.models["loud"]["settings"].pop("broken_start")
    desk.run("results_loud")
    assert desk.results("loud") == {"a", "b"}


def test_wrong_names_of_resources_and_tasks_are_noticed(desk):
    desk.add_samples(["a"])
    desk.add_samples(["b"], task="hesitaton")
    desk.add_model("loud")
    output = desk.run("-n")
    assert "line 2: 1 samples have the task 'hesitaton'" in output
    desk.models["loud"]["resources"]["cpu"] = 4
    output = desk.run("-n", ok=False)
    assert "models.loud.resources.cpu: is no resource" in output and "Write cpus" in output


def test_a_configuration_of_comments_is_all_defaults(desk):
    desk.add_samples(["a"])
    desk.add_model("loud")
    desk.write_config()
    (desk.path / "config" / "config.yaml").write_text("# nothing yet\n")
    desk.write_config = lambda: None
    desk.run("-n")
    (desk.path / "config" / "config.yaml").write_text("- a\n- b\n")
    assert "error: config/config.yaml: holds no keys" in desk.run("-n", ok=False)


def test_a_full_disk_while_publishing_leaves_no_part_and_one_line(desk, monkeypatch):
    from hfd.errors import HfdError
    from hfd.jobs.store import Store, publish

    desk.add_samples(["a", "b"])
    desk.add_model("loud")
    desk.run("results_loud")
    (ticket,) = (desk.path / "work" / "loud" / "shards").glob("*.ticket")

    def full(source, target, *args):
        Path(target).write_bytes(b"half")
        raise OSError(28, "No space left on device", str(target))

    monkeypatch.setattr("hfd.jobs.store.shutil.copyfile", full)
    with pytest.raises(HfdError, match="cannot be written: No space left on device"):
        publish(Store(desk.path, "loud"), "a", ticket)
    assert not list((desk.path / "results" / "loud" / "a").glob(".*"))
