"""Snakemake's lock after a killed run, and runs that cannot be seen from here."""

import json
import os
import subprocess
import sys

import pytest

from hfd.jobs.runlock import clear_stale_lock
from tests.workflow.desk import REPO


@pytest.fixture
def locked(tmp_path):
    """A folder with Snakemake's lock files in it."""
    locks = tmp_path / ".snakemake" / "locks"
    locks.mkdir(parents=True)
    (locks / "0.output.lock").write_text("results/x\n")
    (tmp_path / ".snakemake" / "hfd-runs").mkdir()
    return tmp_path


def _run_of(folder, host: str, pid: int) -> None:
    record = {"host": host, "pid": pid, "since": "yesterday"}
    (folder / ".snakemake" / "hfd-runs" / f"{host}-{pid}.json").write_text(json.dumps(record))


def _unlock(folder, *args: str):
    command = [sys.executable, REPO / "scripts" / "unlock.py", "--directory", folder, *args]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_dead_run_of_this_host_leaves_no_lock(locked):
    _run_of(locked, os.uname().nodename, 2**22 + 1)
    assert "has been cleared" in clear_stale_lock(locked)
    assert not list((locked / ".snakemake" / "locks").iterdir())
    assert clear_stale_lock(locked) is None


def test_a_run_of_another_host_is_dead_only_when_the_user_says_so(locked):
    _run_of(locked, "elsewhere", 77)
    assert "process 77 on elsewhere" in clear_stale_lock(locked)
    refused = _unlock(locked)
    assert refused.returncode == 1
    assert "--dead elsewhere:77" in refused.stderr
    assert list((locked / ".snakemake" / "locks").iterdir())
    assert _unlock(locked, "--dead", "elsewhere:77").returncode == 0
    assert not list((locked / ".snakemake" / "locks").iterdir())
