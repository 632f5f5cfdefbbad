"""The fault matrix: each row on a real Slurm with accounting. See docs/faults.md."""

from __future__ import annotations

import shutil
import signal
import subprocess
import time
from contextlib import contextmanager

import pytest

from tests.system.cluster import ACCOUNT
from tests.system.scene import NAMES, SHARDS, Fault, Scene
from tests.workflow.desk import counts, write_video

pytestmark = [pytest.mark.system, pytest.mark.realtime]


def test_jobs_are_struck_each_in_its_own_way(scene: Scene):
    signals = [
        Fault(f"worker gets signal {int(how)}", model, scene.send(how, model))
        for how, model in (
            (signal.SIGKILL, scene.add_held("killed")),
            (signal.SIGTERM, scene.add_held("stopped")),
            (signal.SIGSEGV, scene.add_held("crashed")),
        )
    ]
    cancelled, late = scene.add_held("cancelled"), scene.add_model("late")
    memory, gpu = scene.add_model("memory"), scene.add_model("gpu")
    scene.desk.faults(late, hang=["s00"])
    scene.desk.faults(memory, memory=["s05"])
    scene.desk.faults(gpu, cuda=["s05"])

    def shorten(run):
        job = scene.in_hand(late, "s00")["job"]
        scene.cluster.run("scontrol", "update", f"JobId={job}", "TimeLimit=0:01")

    def cancel(run):
        scene.cluster.run("scancel", scene.in_hand(cancelled)["job"])
        scene.desk.faults(cancelled)

    with _small_disk(scene, scene.add_model("disk")) as grow:
        scene.play(
            *signals,
            Fault("scancel of one job", cancelled, cancel),
            Fault("time limit of one job reached", late, shorten, begun="s00"),
            # Up to three tries of its shard, each of which may take one sample along.
            Fault("out of memory in one sample", memory, mend=scene.mend(memory), allowed=3),
            Fault("GPU error in one sample", gpu, mend=scene.mend(gpu), allowed=3),
            Fault("disk full in the store", "disk", mend=grow, allowed=2 * SHARDS),
        )
    states = scene.cluster.run("sacct", "--allocations", "--noheader", "--format=State%20")
    assert "CANCELLED" in states and "TIMEOUT" in states


@contextmanager
def _small_disk(scene: Scene, model: str):
    """The model's store lies on a disk with room for half of it; yields what makes it larger."""
    store = scene.desk.path / "work" / model
    store.mkdir(parents=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=900k", "hfd", store]
    grow = ["mount", "-o", "remount,size=100m", store]
    subprocess.run(mount, check=True)
    try:
        yield lambda: subprocess.run(grow, check=True)
    finally:
        subprocess.run(["umount", store], check=True)


def test_snakemake_is_killed(scene: Scene):
    model = scene.add_model("loud")
    kill = lambda run: run.process.kill()  # noqa: E731
    scene.play(Fault("Snakemake gets signal 9", model, kill, allowed=0))


def test_the_cluster_fails_three_times_in_one_run(scene: Scene):
    model = scene.add_model("loud", pace_s=0.4)
    node = scene.cluster.run("sinfo", "--noheader", "--format=%n").strip()
    update = ["scontrol", "update", f"NodeName={node}"]

    def fail(run):
        scene.in_hand(model)
        time.sleep(6)  # slurmctld writes its jobs down every 5 s; those it has not are lost to it
        for daemon in ("slurmctld", "slurmd"):
            scene.in_hand(model)
            scene.cluster.kill(daemon)
            time.sleep(2)
            scene.cluster.run(daemon)
        scene.cluster.run(*update, "State=DRAIN", "Reason=test")
        time.sleep(2)
        scene.cluster.run(*update, "State=RESUME")

    text = "in one run: slurmctld killed and restarted, slurmd likewise, node drained and resumed"
    scene.play(Fault(text, model, fail, begun=1, allowed=SHARDS))


def test_what_is_there_is_lost_or_changed_between_two_runs(scene: Scene):
    scene.use_clone_of_repository()
    models = ("store", "result", "wav", "setting", "code", "clock")
    store, result, wav, setting, code, clock = (scene.add_model(m, shards=1) for m in models)
    scene.desk.faults(clock, error=["s04"])
    scene.run(*(f"results_{model}" for model in models), ok=False)
    assert [scene.loads(model) for model in models] == [1] * len(models)
    _jobs_were_charged_to_the_account(scene)

    shutil.rmtree(scene.desk.path / "work" / store)
    shutil.rmtree(scene.desk.result(result, "s04").parent)
    sound = scene.desk.result(wav, "s04", "assistant_audio.wav")
    sound.write_bytes(sound.read_bytes()[: sound.stat().st_size // 2])
    scene.desk.models[setting]["settings"]["temperature"] = 0.7
    scene.change_code()
    scene.desk.faults(clock)
    scene.shift_files_into_the_future(days=2)
    missing = scene.run("missing")
    assert f"setting temperature changed ({len(NAMES)})" in missing
    assert counts(missing, code) == (len(NAMES), len(NAMES), 0, 0)
    scene.finish(
        Fault("store deleted", store, allowed=0),
        Fault("one result deleted", result, allowed=0),
        Fault("one wav cut to half", wav, allowed=0),
        Fault("one model setting changed: all are stale", setting, allowed=len(NAMES)),
        Fault("code version changed", code, allowed=0),
        Fault("all files dated two days ahead, as by a clock set back; one to do", clock),
        damaged=wav,
    )
    write_video(scene.desk.path / "data" / "videos" / "s04.mp4", seed=5)
    assert "its video changed (1): s04" in scene.run("missing")
    scene.finish(Fault("one input video changed", result))


def _jobs_were_charged_to_the_account(scene: Scene) -> None:
    sacct = ["sacct", "--allocations", "--noheader", "--format=Account"]
    assert set(scene.cluster.run(*sacct).split()) == {ACCOUNT}


def test_three_samples_of_sixty_are_broken(scene: Scene):
    names = NAMES + [f"t{number:02d}" for number in range(52)]
    scene.desk.add_samples(names[len(NAMES) :])
    model = scene.add_model("loud", pace_s=0.01)
    scene.desk.models[model]["shard_minutes"] = 112.5 / 60
    broken = ["s05", "t10", "t40"]
    scene.desk.faults(model, error=broken)
    output = scene.run(f"results_{model}", ok=False)
    assert output.count("this sample cannot be answered") >= 3
    assert scene.desk.results(model) == set(names) - set(broken)
    assert "cannot be answered (3): s05, t10, t40" in scene.run("missing")
    scene.desk.faults(model)
    loads = scene.loads(model)
    scene.finish(Fault("3 broken samples among 60", model, allowed=3), names=names)
    assert scene.loads(model) == loads + 1  # three shards' leftovers are one job
