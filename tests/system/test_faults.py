"""The fault matrix: each row on a real Slurm. See docs/faults.md."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time

import pytest

from tests.system.scene import MODEL, NAMES, Scene, kill
from tests.workflow.desk import counts, write_video

pytestmark = pytest.mark.system


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV])
def test_a_worker_is_killed(scene: Scene, how):
    scene.set_model()
    fault = f"worker gets signal {int(how)}"
    scene.play(fault, lambda run: kill(scene.busy_workers()[:1], how), allowed=1)


def test_snakemake_is_killed(scene: Scene):
    scene.set_model()
    scene.play("Snakemake gets signal 9", lambda run: run.process.kill(), allowed=0)


def test_a_job_is_cancelled(scene: Scene):
    scene.set_model()
    cancel = lambda run: scene.cluster.run("scancel", scene.cluster.jobs()[0])  # noqa: E731
    scene.play("scancel of one job", cancel, allowed=1)


def test_a_time_limit_is_reached(scene: Scene):
    scene.set_model()
    scene.desk.models[MODEL]["settings"]["pace_s"] = 2

    def shorten(run):
        job = scene.cluster.jobs()[0]
        scene.cluster.run("scontrol", "update", f"JobId={job}", "TimeLimit=0:01")

    scene.play("time limit of one job reached", shorten, allowed=1)


def test_slurmd_is_killed_and_restarted(scene: Scene):
    scene.set_model()

    def restart(run):
        scene.cluster.kill("slurmd")
        time.sleep(2)
        scene.cluster.start_slurmd()

    scene.play("slurmd killed and restarted", restart)


def test_slurmctld_is_killed_and_restarted(scene: Scene):
    scene.set_model()

    def restart(run):
        scene.cluster.kill("slurmctld")
        time.sleep(2)
        scene.cluster.start_slurmctld()

    scene.play("slurmctld killed and restarted", restart)


def test_the_node_is_drained_and_comes_back(scene: Scene):
    scene.set_model()
    node = scene.cluster.run("sinfo", "--noheader", "--format=%n").strip()

    def drain(run):
        command = ["scontrol", "update", f"NodeName={node}"]
        scene.cluster.run(*command, "State=DRAIN", "Reason=test")
        time.sleep(5)
        scene.cluster.run(*command, "State=RESUME")

    scene.play("node drained, then resumed", drain, begun=1, allowed=0)


def test_a_sample_takes_too_much_memory(scene: Scene):
    scene.set_model()
    scene.desk.faults(MODEL, memory=["s05"])
    # Three tries of its shard, each of which may take one sample along.
    scene.play("out of memory in one sample", lambda run: None, allowed=4, mend=scene.no_faults)


def test_the_gpu_fails_in_mid_sample(scene: Scene):
    scene.set_model()
    scene.desk.faults(MODEL, cuda=["s05"])
    scene.play("GPU error in one sample", lambda run: None, allowed=3, mend=scene.no_faults)


def test_the_disk_is_full_in_the_store(scene: Scene):
    scene.set_model()
    store = scene.desk.path / "work" / MODEL
    store.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1200k", "hfd", store], check=True)
    try:
        grow = ["mount", "-o", "remount,size=100m", store]
        scene.play(
            "disk full in the store", lambda run: None, allowed=4,
            mend=lambda: subprocess.run(grow, check=True),
        )  # fmt: skip
    finally:
        subprocess.run(["umount", store], check=True)


def _complete(scene: Scene) -> None:
    scene.set_model()
    scene.run()
    assert scene.desk.calls(MODEL, "load").total() == 4  # one for each shard


def test_the_store_is_deleted(scene: Scene):
    _complete(scene)
    shutil.rmtree(scene.desk.path / "work" / MODEL)
    scene.finish("store deleted", "completed", allowed=0)


def test_a_result_is_deleted(scene: Scene):
    _complete(scene)
    shutil.rmtree(scene.desk.result(MODEL, "s04").parent)
    scene.finish("one result deleted", "completed", allowed=0)


def test_a_result_is_cut_to_half(scene: Scene):
    _complete(scene)
    wav = scene.desk.result(MODEL, "s04", "assistant_audio.wav")
    wav.write_bytes(wav.read_bytes()[: wav.stat().st_size // 2])
    scene.finish("one wav cut to half", "completed", allowed=0, damaged="s04")


def test_an_input_video_changes(scene: Scene):
    _complete(scene)
    write_video(scene.desk.path / "data" / "videos" / "s04.mp4", seed=5)
    assert "its video changed (1): s04" in scene.run("missing")
    scene.finish("one input video changed", "completed", allowed=1)


def test_a_model_setting_changes(scene: Scene):
    _complete(scene)
    scene.desk.models[MODEL]["settings"]["temperature"] = 0.7
    assert "setting temperature changed (12)" in scene.run("missing")
    scene.finish("one model setting changed (all 12 are stale)", "completed", allowed=12)


def test_the_code_changes(scene: Scene):
    scene.use_clone_of_repository()
    _complete(scene)
    scene.change_code()
    assert counts(scene.run("missing"), MODEL) == (12, 12, 0, 0)
    scene.finish("code version changed", "completed", allowed=0)


def test_the_clock_is_set_back(scene: Scene):
    scene.set_model()
    scene.desk.faults(MODEL, error=["s04"])
    scene.run(ok=False)
    scene.no_faults()
    scene.shift_files_into_the_future(days=2)
    scene.finish("clock set back two days before the next run", "ended with exit code 1", allowed=1)


def test_three_samples_of_sixty_are_broken(scene: Scene):
    names = NAMES + [f"t{number:02d}" for number in range(48)]
    scene.desk.add_samples(names[12:])
    scene.desk.add_model(MODEL, shard_minutes=64.5 / 60, pace_s=0.01)
    scene.desk.models[MODEL]["resources"] |= {"gpu": 1, "mem_mb": 900}
    broken = ["s03", "t10", "t40"]
    scene.desk.faults(MODEL, error=broken)
    output = scene.run(ok=False)
    assert output.count("this sample cannot be answered") >= 3
    assert scene.desk.results(MODEL) == set(names) - set(broken)
    assert "cannot be answered (3): s03, t10, t40" in scene.run("missing")
    scene.no_faults()
    fault = "3 broken samples among 60"
    scene.finish(fault, "delivered 57, ended with exit code 1", allowed=3, names=names)
    assert scene.table.rows[fault].loads == 1  # three shards' leftovers are one job
