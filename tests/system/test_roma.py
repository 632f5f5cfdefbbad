"""The literal command with ROMA's own runner (tiny, random weights) and the demo's data."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from hfd.jobs.plan import read_plan
from hfd.jobs.store import Store
from tests.system.cluster import ACCOUNT, Cluster
from tests.system.scene import Table, in_hand, results_are_whole
from tests.workflow.desk import REPO, Started
from tests.workflow.repository import clone_repository

pytestmark = [pytest.mark.system, pytest.mark.realtime]

ROMA_PYTHON = REPO / ".venv-roma" / "bin" / "python"
SETTINGS = """
slurm-init-seconds-before-status-checks: 2
seconds-between-status-checks: 2
"""


@pytest.fixture
def home(cluster: Cluster, demo_folder: Path, tmp_path: Path) -> Path:
    """A fresh clone with the demo's data, set up as a user would."""
    home = clone_repository(tmp_path / "hfd-duplex")
    shutil.copytree(demo_folder, home / "data", dirs_exist_ok=True)
    subprocess.run([ROMA_PYTHON, "scripts/make_roma_tiny.py", "roma-tiny"], cwd=home, check=True)
    models = yaml.safe_load((home / "config/models.yaml").read_text())["models"]
    tiny = yaml.safe_load((home / "config/demo_roma.yaml").read_text())["models"]["roma"]
    roma = models["roma"] | tiny | {"python": str(ROMA_PYTHON), "load_minutes": 0}
    roma["shard_minutes"] = 0.85  # three shards of two to four samples
    roma["resources"] |= {"gpu": 1, "slurm_account": ACCOUNT}
    (home / "config/models.yaml").write_text(yaml.safe_dump({"models": {"roma": roma}}))
    with (home / "profiles/slurm/config.yaml").open("a") as profile:
        profile.write(SETTINGS)
    for target in ("regenerate_hesitation", "check_data"):
        _snakemake(home, f"snakemake --profile profiles/local {target}").end()
    return home


def _snakemake(home: Path, command: str) -> Started:
    path, log = f"{Path(sys.executable).parent}:{os.environ['PATH']}", home / "said.txt"
    with log.open("a") as said:
        process = subprocess.Popen(
            command.split(), cwd=home, env=os.environ | {"PATH": path},
            stdin=subprocess.DEVNULL, stdout=said, stderr=said,
        )  # fmt: skip
    return Started(process, log)


def _logged(home: Path, what: str) -> int:
    """How many lines of the shards' logs match."""
    logs = (home / "logs/roma/infer").glob("*.log")
    return sum(len(re.findall(what, log.read_text(), re.MULTILINE)) for log in logs)


def _in_mid_sample(home: Path, but: str | None = None) -> dict[str, Any]:
    """A worker that has loaded the model and begun a sample, in another job than `but`."""
    while True:
        worker = in_hand(Store(home, "roma"), but=[but])
        log = home / "logs/roma/infer" / f"{worker['shard']}.log"
        if log.read_text().endswith("s of media\n"):
            return worker
        time.sleep(0.2)


def test_roma_on_the_demo_data_is_struck_three_times_in_one_run(home: Path, fault_table: Table):
    store, command = Store(home, "roma"), "snakemake --profile slurm results_roma"
    run = _snakemake(home, command)
    killed = _in_mid_sample(home)
    os.kill(killed["pid"], signal.SIGKILL)
    cancelled = _in_mid_sample(home, but=killed["job"])
    run.process.kill()
    run.end()
    subprocess.run(["scancel", cancelled["job"]], check=True)
    results_are_whole(home / "results")
    first = len(list((home / "results").glob("roma/*/result.json")))
    shards = len(read_plan(store.plan).shards)
    assert shards == 3
    for _ in range(2400):  # the third job goes on alone
        if (loads := _logged(home, "roma loaded in")) == shards:
            break
        time.sleep(0.5)
    assert loads == shards

    run = _snakemake(home, command)
    for _ in run.turns(every_s=1):
        results_are_whole(home / "results")
    assert run.process.returncode == 0, run.log.read_text()
    results_are_whole(home / "results")
    assert len(list((home / "results").glob("roma/*/result.json"))) == 9
    twice = _logged(home, "s of media$") - 9
    fault = (
        "ROMA-tiny, demo data (9 samples, 3 shards): at once a worker killed with 9, Snakemake"
        " killed with 9, a job cancelled"
    )
    again = _logged(home, "roma loaded in") - loads
    fault_table.add(fault, f"delivered {first} of 9", twice, 2, again)
    assert twice <= 2
    assert again <= shards
    assert "Nothing to be done" in _snakemake(home, command).end()
