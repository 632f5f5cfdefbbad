"""What the cluster guide says of other clusters and settings, on the real thing."""

from __future__ import annotations

import pytest

from tests.system.scene import NAMES, Scene

pytestmark = pytest.mark.system


def test_a_cluster_without_accounting_needs_one_setting(scene: Scene):
    model = scene.add_model("loud", shards=1)
    del scene.desk.models[model]["resources"]["slurm_account"]
    with scene.cluster.without_accounting():
        assert "accounting storage is disabled" in scene.cluster.run("sacct", check=False)
        scene.run(f"results_{model}", "--slurm-no-account")
    assert scene.desk.results(model) == set(NAMES)


def test_light_jobs_go_to_the_cluster(scene: Scene):
    model = scene.add_model("loud")
    scene.desk.config |= {"light_jobs": "cluster"}
    (scene.desk.path / "data" / "manifest.jsonl").unlink()
    scene.desk.add_samples(["中文 a", "b"])
    before = scene.cluster.submissions()
    scene.run(f"results_{model}")
    assert scene.desk.results(model) == {"中文 a", "b"}
    assert scene.cluster.submissions() - before == 5  # two checks, the one shard, two published
