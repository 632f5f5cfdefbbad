"""The real Snakemake on small sets: what runs, what does not, and what the user is told."""

import json
import os
import shutil
import subprocess
import time
from itertools import pairwise

import pytest

from hfd.files import sha256_file
from hfd.jobs.hashes import signature
from hfd.jobs.store import FILES
from tests.workflow.desk import MODELS_FOR_TESTS, counts, write_video

ODD_IDS = ["a b", "中文 'x'", "-lead", 'q"uote', "[x]%s $HOME", "semi;colon&", "ünï"]


def test_ids_of_any_script_pass_through_and_a_second_run_does_nothing(desk):
    desk.add_samples(ODD_IDS)
    desk.add_model("loud")
    desk.add_model("quiet", speak=False)
    dry = desk.run("-n")
    assert counts(dry, "loud") == (7, 0, 0, 7)
    assert "loud: never run (7): a b, 中文 'x', -lead" in dry
    assert not (desk.path / "work").exists()
    desk.run()
    for model in ("loud", "quiet"):
        assert desk.results(model) == set(ODD_IDS)
        assert all(count == 1 for count in desk.calls(model).values())
        for name in FILES:
            assert desk.result(model, "-lead", name).stat().st_size > 0
    assert "Nothing to be done" in desk.run()
    assert counts(desk.run("missing"), "loud") == (7, 7, 0, 0)


def test_the_pilot_runs_the_first_samples_only(desk):
    desk.add_samples(["one", "two", "three", "four"])
    desk.add_model("loud")
    desk.run("pilot_loud")
    assert set(desk.calls("loud")) == {"one", "two"}
    desk.run("results_loud")
    assert desk.calls("loud") == dict.fromkeys(["one", "two", "three", "four"], 1)


def test_a_failing_sample_costs_itself_alone_and_is_tried_again_by_the_next_run(desk):
    names = [f"s{n}" for n in range(8)]
    desk.add_samples(names)
    desk.add_model("loud", shard_minutes=0.2)  # 12 s: three samples of 4 s
    desk.faults("loud", error=["s4"])
    output = desk.run("results_loud", ok=False)
    assert "this sample cannot be answered" in output
    assert desk.results("loud") == set(names) - {"s4"}
    dry = desk.run("-n")
    assert "failed: ValueError: this sample cannot be answered (1): s4" in dry
    desk.faults("loud")
    loads = desk.calls("loud", "load").total()
    desk.run("results_loud")
    assert desk.results("loud") == set(names)
    assert desk.calls("loud") == {name: 1 + (name == "s4") for name in names}
    assert desk.calls("loud", "load").total() == loads + 1


@pytest.mark.parametrize(
    ("fault", "said"), [("cuda", "an illegal memory access"), ("segfault", "its worker died")]
)
def test_a_sample_that_breaks_every_worker_keeps_no_other_from_its_result(desk, fault, said):
    names = [f"s{n}" for n in range(6)]
    desk.add_samples(names)
    desk.add_model("loud")
    desk.faults("loud", **{fault: ["s3"]})
    desk.run("results_loud", ok=False)
    assert desk.results("loud") == set(names) - {"s3"}
    assert desk.calls("loud") == {name: 1 + (name == "s3") for name in names}
    assert "2 workers ended while they ran it" in (missing := desk.run("missing"))
    assert said in missing
    desk.faults("loud")
    desk.run("results_loud")
    assert desk.results("loud") == set(names)


def test_deleted_and_damaged_results_are_brought_back_without_the_model(desk):
    desk.add_samples(["a", "b", "c", "d"])
    desk.add_model("loud")
    desk.run()
    whole = desk.result("loud", "c", "assistant_audio.wav").read_bytes()
    desk.result("loud", "b").unlink()
    wav = desk.result("loud", "c", "assistant_audio.wav")
    wav.write_bytes(whole[: len(whole) // 2])
    desk.result("loud", "d", "trace.jsonl.gz").unlink()
    desk.run()
    assert wav.read_bytes() == whole
    assert desk.result("loud", "b").exists()
    assert desk.result("loud", "d", "trace.jsonl.gz").exists()
    assert desk.calls("loud", "load").total() == 2  # pilot and rest, in the first run
    assert "Nothing to be done" in desk.run()


def test_a_lost_store_is_restored_from_the_results(desk):
    desk.add_samples(["a", "b", "c"])
    desk.add_model("loud")
    desk.run()
    shutil.rmtree(desk.path / "work" / "loud")
    desk.run()
    assert desk.results("loud") == {"a", "b", "c"}
    assert desk.calls("loud") == {"a": 1, "b": 1, "c": 1}


def test_a_changed_video_makes_its_own_sample_stale_and_no_other(desk):
    names = ["a", "b", "c", "d", "e"]
    desk.add_samples(names)
    desk.add_model("loud")
    desk.run()
    write_video(desk.path / "data" / "videos" / "d.mp4", seed=3)
    assert "loud: stale: its video changed (1): d" in desk.run("-n")
    desk.run()
    assert desk.calls("loud") == {name: 1 + (name == "d") for name in names}
    assert "Nothing to be done" in desk.run()


def _older(path):
    os.utime(path, (1e9, 1e9))


def test_a_video_replaced_by_an_older_file_loses_its_verdict_and_its_result(desk):
    desk.add_samples(["a", "b", "c"])
    desk.add_model("loud")
    desk.run()
    video = desk.path / "data" / "videos" / "b.mp4"
    write_video(desk.path / "new.mp4", seed=3)
    _older(desk.path / "new.mp4")
    subprocess.run(["cp", "-p", desk.path / "new.mp4", video], check=True)  # keeps the old time
    dry = desk.run("-n", "check_data")
    assert "check b" in dry and "check a" not in dry
    desk.run()
    verdict = json.loads((desk.path / "work" / "checks" / "b.json").read_text())
    assert verdict["video_sha256"] == sha256_file(video)
    assert desk.calls("loud") == {"a": 1, "b": 2, "c": 1}
    assert "Nothing to be done" in desk.run()
    video.write_text("no video any more")
    _older(video)
    assert "its input was refused" in desk.run(ok=False)
    assert desk.results("loud") == {"a", "c"}


def test_a_touched_video_is_hashed_once_and_nothing_else_is_done(desk):
    desk.add_samples(["a", "b"])
    desk.add_model("loud")
    desk.run()
    video = desk.path / "data" / "videos" / "b.mp4"
    _older(video)
    assert "Nothing to be done" in desk.run()
    records = [json.loads(p.read_text()) for p in (desk.path / "work" / "hashes").iterdir()]
    known = {record["path"]: record["signature"] for record in records}
    assert known["data/videos/b.mp4"] == signature(video)


def test_missing_videos_are_their_samples_fault_and_listed_together(desk):
    names = ["a", "b", "c", "d"]
    desk.add_samples(names)
    desk.add_model("loud")
    for name in ("b", "d"):
        (desk.path / "data" / "videos" / f"{name}.mp4").unlink()
    output = desk.run("check_data", ok=False)
    for name in ("b", "d"):
        assert f"fail    {name}: video: cannot be read: No such file" in output
    assert "4 samples: 2 ok, 0 suspect, 2 fail" in output
    output = desk.run("results_loud", ok=False)
    assert desk.results("loud") == {"a", "c"}
    assert counts(output, "loud") == (4, 2, 2, 0)
    desk.add_samples(names)  # writes the videos again; the manifest keeps its four rows
    manifest = desk.path / "data" / "manifest.jsonl"
    manifest.write_text("".join(manifest.read_text().splitlines(keepends=True)[:4]))
    assert counts(desk.run("results_loud"), "loud") == (4, 4, 0, 0)
    assert set(desk.calls("loud").values()) == {1}


def test_a_video_that_is_deleted_after_its_run_is_no_longer_done(desk):
    desk.add_samples(["a", "b", "c"])
    desk.add_model("loud")
    desk.run()
    video = desk.path / "data" / "videos" / "b.mp4"
    kept = video.rename(desk.path / "kept.mp4")
    output = desk.run("results_loud", ok=False)
    assert counts(output, "loud") == (3, 2, 0, 1)
    assert "data/videos/b.mp4: cannot be read: No such file or directory (1): b" in output
    assert "b: fail" in (desk.path / "logs" / "check_sample" / "b.log").read_text()
    kept.rename(video)
    desk.run()
    assert desk.calls("loud") == {"a": 1, "b": 1, "c": 1}


def test_a_deny_list_that_is_not_there_is_an_error_also_when_checks_exist(desk):
    desk.add_samples(["a", "b"])
    desk.add_model("loud")
    desk.run("check_data")
    desk.config = {"pilot_n": 2, "check": {"deny_list": "denyed.txt"}}
    output = desk.run("check_data", ok=False)
    assert "error: denyed.txt: " in output and "Traceback" not in output
    video = desk.path / "data" / "videos" / "a.mp4"
    denied = desk.path / "denyed.txt"
    denied.write_text(f"{sha256_file(video)}\n")  # both samples are copies of one video
    _older(denied)
    assert "2 fail" in desk.run("check_data", ok=False)
    denied.write_text(f"{'0' * 64}\n")
    _older(denied)
    assert "2 ok" in desk.run("check_data")


def test_exactly_the_samples_that_changed_are_published(desk):
    names = [f"s{n}" for n in range(8)]
    desk.add_samples(names)
    desk.add_model("loud")
    desk.faults("loud", error=["s5"])
    desk.run("results_loud", ok=False)
    before = {name: desk.result("loud", name).stat().st_mtime_ns for name in desk.results("loud")}
    for _ in range(2):  # a sample that always fails is tried alone, every time
        output = desk.run("results_loud", ok=False)
        assert "loud: s5" in output and "loud: s4" not in output
    (desk.path / "data" / "videos" / "s2.mp4").unlink()
    write_video(desk.path / "data" / "videos" / "s2.mp4", seed=4)
    desk.faults("loud")
    desk.run("results_loud")
    after = {name: desk.result("loud", name).stat().st_mtime_ns for name in names}
    assert {name for name in names if after[name] != before.get(name)} == {"s2", "s5"}


def test_a_changed_setting_makes_all_of_its_model_stale_and_nothing_of_another(desk):
    desk.add_samples(["a", "b", "c"])
    desk.add_model("loud")
    desk.add_model("other")
    desk.run()
    desk.models["loud"]["settings"]["temperature"] = 0.5
    assert "loud: stale: setting temperature changed (3): a, b, c" in desk.run("-n")
    desk.run()
    assert desk.calls("loud") == {"a": 2, "b": 2, "c": 2}
    assert desk.calls("other") == {"a": 1, "b": 1, "c": 1}


def test_changed_weights_make_results_stale(desk):
    (desk.path / "weights").mkdir()
    weights = desk.path / "weights" / "model.bin"
    weights.write_bytes(b"one")
    desk.add_samples(["a", "b", "c"])
    desk.add_model("loud")
    desk.models["loud"]["weights"] = ["weights"]
    desk.run()
    weights.write_bytes(b"two")
    desk.run()
    assert desk.calls("loud") == {"a": 2, "b": 2, "c": 2}


def test_a_sample_whose_check_fails_never_reaches_the_model(desk):
    desk.add_samples(["good", "fine"])
    desk.add_samples(["short"], pictures=20)
    manifest = desk.path / "data" / "manifest.jsonl"
    manifest.write_text(manifest.read_text().replace('"short"', '"short", "x": 1'))
    (desk.path / "data" / "videos" / "short.mp4").write_text("this is a text file")
    desk.add_model("loud")
    output = desk.run("results_loud", ok=False)
    assert "its input was refused" in output
    assert desk.results("loud") == {"good", "fine"}
    assert "short" not in desk.calls("loud")


def test_parsing_writes_nothing(desk):
    desk.add_samples(["a", "b"])
    desk.add_model("loud")
    desk.run()

    def snapshot():
        return {
            path: path.stat().st_mtime_ns
            for path in desk.path.rglob("*")
            if not {".snakemake", "config"} & set(path.parts) and path.suffix != ".txt"
        }

    before = snapshot()
    desk.run("-n")
    desk.run("-n", "results_loud")
    assert snapshot() == before


def test_a_typo_in_the_configuration_is_named(desk):
    desk.add_samples(["a"])
    desk.add_model("loud")
    desk.models["loud"]["shard_minuets"] = 3
    output = desk.run("-n", ok=False)
    assert "error: config/models.yaml: models.loud: " in output
    assert "'shard_minuets' was unexpected" in output
    assert "Traceback" not in output


def test_a_config_file_that_is_no_yaml_is_named_with_the_line(desk):
    desk.write_config()
    (desk.path / "config" / "models.yaml").write_text("models:\n  loud: {module: x\n  a: b\n")
    desk.write_config = lambda: None
    output = desk.run("-n", ok=False)
    assert "error: config/models.yaml:3: is no YAML" in output
    assert "Traceback" not in output


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("results_loud", "error: data/manifest.jsonl: is missing. Put the data set into data/"),
        ("regenerate_hesitation", "error: data/raw/manifest.jsonl: file is missing"),
        ("work/checks/nobody.json", "error: data/manifest.jsonl: has no sample 'nobody'"),
    ],
)
def test_what_a_target_lacks_is_one_line_without_a_traceback(desk, target, said):
    desk.add_model("loud")
    output = desk.run(target, ok=False)
    assert said in output
    assert "Traceback" not in output


def test_a_bad_manifest_is_one_clear_error(desk):
    desk.add_samples(["a"])
    desk.add_model("loud")
    with (desk.path / "data" / "manifest.jsonl").open("a") as manifest:
        manifest.write('{"sample_id": "../x"}\n')
    output = desk.run("-n", ok=False)
    assert "data/manifest.jsonl:2" in output
    assert "Traceback" not in output


def test_results_that_cannot_be_written_are_one_clear_error_and_nothing_is_lost(desk):
    desk.add_samples(["a", "b"])
    desk.add_model("loud")
    (desk.path / "results").write_text("a file where a folder should be")
    desk.run(ok=False)
    (desk.path / "results").unlink()
    desk.run()
    assert desk.calls("loud") == {"a": 1, "b": 1}


def test_one_gpu_runs_one_worker_at_a_time(desk):
    desk.add_samples(["a", "b", "c", "d"])
    for model in ("first", "second"):
        desk.add_model(model, pace_s=0.05)
        desk.models[model]["resources"]["gpu"] = 1
        desk.models[model]["settings"]["calls"] = str(desk.path / "both.calls")
    desk.run(environment={"CUDA_VISIBLE_DEVICES": "0"})
    lines = [json.loads(line) for line in (desk.path / "both.calls").read_text().splitlines()]
    workers = [pid for _, _, pid, _ in lines]
    changes = sum(one != two for one, two in pairwise(workers))
    assert changes == len(set(workers)) - 1  # no two workers' lines are interleaved


def test_the_audit_counts_what_is_missing_and_a_later_audit_waits_for_it(desk):
    desk.add_samples(["a", "b", "c"])
    desk.add_model("loud")
    assert "nothing is wrong" in desk.run("pilot_loud")
    assert "1 missing of 3" in desk.run("audit_now", ok=None)
    desk.run("audit", ok=None)
    assert desk.results("loud") == {"a", "b", "c"}
    assert (desk.path / "results" / "audit" / "index.html").exists()


def test_changed_code_of_the_users_own_module_reruns_nothing_unless_that_is_asked_for(desk):
    own = desk.path / "config" / "mine"  # beside the configuration, no PYTHONPATH needed
    shutil.copytree(MODELS_FOR_TESTS / "testmodels", own)
    desk.add_samples(["a", "b", "c"])
    desk.add_model("loud")
    desk.models["loud"]["module"] = "mine.beeper"
    desk.config = {"pilot_n": 2, "rerun_on": ["code"]}
    desk.run(environment={"PYTHONPATH": ""})
    assert "Nothing to be done" in desk.run(environment={"PYTHONPATH": ""})
    with (own / "beeper.py").open("a") as module:
        module.write("# changed\n")
    assert "loud: stale: code changed (3): a, b, c" in desk.run("-n")
    desk.config = {"pilot_n": 2}
    assert "Nothing to be done" in desk.run()
    assert desk.calls("loud") == {"a": 1, "b": 1, "c": 1}


def test_a_clock_that_was_set_back_stops_nothing(desk):
    desk.add_samples(["a", "b", "c"])
    desk.add_model("loud")
    desk.faults("loud", error=["c"])
    desk.run(ok=False)
    desk.faults("loud")
    for path in desk.path.rglob("*"):  # what the earlier run left lies in the future now
        if path.is_file():
            os.utime(path, (time.time() + 2 * 86400,) * 2)
    desk.run()
    assert desk.results("loud") == {"a", "b", "c"}
    assert desk.calls("loud") == {"a": 1, "b": 1, "c": 2}
    assert "Nothing to be done" in desk.run()


def test_evidence_that_appears_or_changes_makes_the_audit_anew(desk):
    desk.add_samples(["one"])
    desk.add_model("loud")
    desk.run("audit_loud")
    assert "Nothing to be done" in desk.run("audit_loud")
    heard = desk.path / "work/audit/transcripts/loud.jsonl"
    heard.parent.mkdir(parents=True)
    digest = sha256_file(desk.result("loud", "one", "assistant_audio.wav"))
    for text in ("something", "something else"):
        row = {"wav_sha256": digest, "text": text, "avg_logprob": -0.2}
        heard.write_text(json.dumps(row) + "\n", encoding="utf-8")
        assert "Nothing to be done" not in desk.run("audit_loud")
        assert "Nothing to be done" in desk.run("audit_loud")
    heard.unlink()
    assert "Nothing to be done" not in desk.run("audit_loud")
    assert desk.calls("loud") == {"one": 1}


def test_the_audit_of_what_there_is_chooses_its_models(desk):
    desk.add_samples(["one"])
    desk.add_model("loud")
    desk.add_model("quiet", speak=False)
    desk.run("results_loud")
    summary = desk.path / "results/audit_now/summary.json"
    for more, models in (((), ["loud"]), (("--config", "audit={models: [quiet]}"), ["quiet"])):
        desk.run("audit_now", *more)
        assert json.loads(summary.read_text(encoding="utf-8"))["models"] == models
    assert "there is no model 'loudest'" in desk.run(
        "audit_now", "--config", "audit={models: [loudest]}", ok=False
    )
