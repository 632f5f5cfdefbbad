"""Many samples through a real Slurm, and what that costs."""

from __future__ import annotations

import time

import psutil
import pytest

from tests.system.cluster import ACCOUNT, Cluster
from tests.system.scene import FAST, Table
from tests.workflow.desk import REPO, Desk

MODEL = "loud"
pytestmark = pytest.mark.system


def test_1024_samples_through_four_cards(cluster: Cluster, tmp_path):
    desk = Desk(tmp_path, profile="slurm")
    (tmp_path / "slurm").symlink_to(REPO / "profiles" / "slurm")
    desk.add_samples([f"s{number:04d}" for number in range(859)], pictures=16)
    desk.add_samples([f"h{number:03d}" for number in range(165)], pictures=16)
    desk.add_model(MODEL, shard_minutes=8, speak=False)
    desk.models[MODEL]["resources"] |= {"gpu": 1, "mem_mb": 900, "slurm_account": ACCOUNT}
    _set_checks_aside(desk)
    before, began = cluster.submissions(), time.monotonic()
    run = desk.start(f"results_{MODEL}", "--resources", "gpu=4", *FAST)
    main, cpu_s = psutil.Process(run.process.pid), 0.0
    for _ in run.turns(every_s=0.5):
        cpu_s = sum(main.cpu_times()[:2]) if main.is_running() else cpu_s
    wall_s = time.monotonic() - began
    assert run.process.returncode == 0, run.log.read_text()[-3000:]
    assert len(desk.results(MODEL)) == 1024
    submitted = cluster.submissions() - before
    loads = desk.calls(MODEL, "load").total()
    assert submitted == loads <= 10
    began = time.monotonic()
    assert "Nothing to be done" in desk.run(f"results_{MODEL}", *FAST)
    again_s = time.monotonic() - began
    assert again_s <= 15
    table = Table(REPO / "docs" / "load.md", tmp_path)
    table.add("sbatch calls", submitted)
    table.add("model loads", loads)
    table.add("wall time", f"{wall_s:.0f} s")
    table.add("Snakemake's own CPU time, publishing not counted", f"{cpu_s:.0f} s")
    table.add("unchanged second run, one model", f"{again_s:.1f} s")
    table.write()


def _set_checks_aside(desk: Desk) -> None:
    """All samples are copies of one video: check one and copy its verdict."""
    first = "work/checks/s0000.json"
    local = Desk(desk.path, desk.models, profile=str(REPO / "profiles" / "local"))
    local.run(first)
    verdict = (desk.path / first).read_text()
    for video in (desk.path / "data" / "videos").iterdir():
        path = desk.path / "work" / "checks" / f"{video.stem}.json"
        path.write_text(verdict.replace('"s0000"', f'"{video.stem}"'))
