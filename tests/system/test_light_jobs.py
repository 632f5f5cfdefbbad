"""Checks as jobs of a cluster (light_jobs: cluster): whatever their number, all are submitted."""

from __future__ import annotations

import pytest

from tests.system.cluster import Cluster
from tests.system.scene import FAST
from tests.workflow.desk import REPO, Desk

pytestmark = pytest.mark.system


def test_every_light_job_is_submitted(cluster: Cluster, tmp_path) -> None:
    """Five checks, two at once: as job arrays, plugin 2.8.0 would wait for the others for ever."""
    samples = 5
    desk = Desk(tmp_path, profile="slurm", config={"pilot_n": 2, "light_jobs": "cluster"})
    (tmp_path / "slurm").symlink_to(REPO / "profiles" / "slurm")
    desk.add_samples([f"s{number}" for number in range(samples)])
    desk.add_model("any")
    before = cluster.submissions()
    run = desk.start("check_data", "--jobs", "2", *FAST)
    for _ in run.turns(every_s=0.5):
        pass
    assert run.process.returncode == 0, run.log.read_text()[-3000:]
    assert cluster.submissions() - before == samples
    assert f"{samples} samples: {samples} ok" in run.log.read_text()
