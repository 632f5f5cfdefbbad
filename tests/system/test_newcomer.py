"""README's tour on a cluster: the same six samples, the shipped configuration, --profile slurm."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.system.cluster import ACCOUNT, Cluster
from tests.system.scene import FAST
from tests.workflow.desk import HANGS_S, REPO, counts
from tests.workflow.repository import clone_repository

pytestmark = pytest.mark.system

SAMPLES = 6
SLURM = {"sacct", "sacctmgr", "sbatch", "scancel", "scontrol", "sinfo", "squeue", "srun"}
PATH = f"{Path(sys.executable).parent}:{os.environ['PATH']}"


@pytest.fixture(scope="module")
def home(cluster: Cluster, demo_folder: Path, tmp_path_factory) -> Path:
    """A fresh clone with six samples of real recordings; its environment and account are named."""
    home = clone_repository(tmp_path_factory.mktemp("newcomer") / "hfd-duplex")
    shutil.copytree(demo_folder, home / "data", dirs_exist_ok=True)
    raw = home / "data" / "raw" / "manifest.jsonl"
    raw.write_text("".join(raw.read_text("utf-8").splitlines(True)[: SAMPLES - 2]), "utf-8")
    config = home / "config" / "models.yaml"
    models = yaml.safe_load(config.read_text("utf-8"))
    cascade = models["models"]["cascade"]
    cascade["python"] = str(REPO / ".venv" / "bin" / "python")
    cascade["resources"]["slurm_account"] = ACCOUNT
    config.write_text(yaml.safe_dump(models), "utf-8")
    _type(home, "snakemake", "regenerate_hesitation")
    return home


def _type(home: Path, *words: str, ok: bool = True, path: str = PATH) -> str:
    done = subprocess.run(
        words, cwd=home, env=os.environ | {"PATH": path}, text=True, timeout=HANGS_S,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    assert (done.returncode == 0) == ok, done.stdout
    assert "Traceback" not in done.stdout
    return done.stdout


def test_the_results_of_six_samples_come_through_slurm(home: Path, cluster: Cluster):
    before = cluster.submissions()
    dry = _type(home, "snakemake", "--profile", "slurm", "-n", "results_cascade")
    assert counts(dry, "cascade") == (SAMPLES, 0, 0, SAMPLES)
    assert cluster.submissions() == before
    said = _type(home, "snakemake", "--profile", "slurm", "results_cascade", *FAST)
    assert counts(said, "cascade") == (SAMPLES, SAMPLES, 0, 0)
    assert cluster.submissions() - before == 2  # the pilot and the rest
    said = _type(home, "snakemake", "audit_now")
    assert f"cascade: {SAMPLES} expected" in said


def test_without_a_cluster_the_profile_says_so_in_one_sentence(home: Path, tmp_path: Path):
    for program in [path for folder in PATH.split(":") for path in Path(folder).glob("*")]:
        if program.name not in SLURM and not (tmp_path / program.name).is_symlink():
            (tmp_path / program.name).symlink_to(program)
    words = ("snakemake", "--profile", "slurm", "results_cascade")
    said = _type(home, *words, ok=False, path=str(tmp_path))
    (line,) = (line for line in said.splitlines() if "error:" in line)
    assert "submits with sbatch, which this machine has not" in line
