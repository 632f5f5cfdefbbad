"""At most one worker computes a sample."""

import os
import subprocess
import sys
import time

import pytest

from hfd.jobs.lease import Leases
from tests.workflow.desk import REPO

HOLDER = """
import sys, time
from pathlib import Path
from hfd.jobs.lease import Leases
with Leases("shard") as leases:
    assert leases.take(Path(sys.argv[1])) == {}
    print("held", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds a lease, and the lease's path."""
    path = tmp_path / "lease.json"
    environment = os.environ | {"PYTHONPATH": str(REPO / "scripts")}
    command = [sys.executable, "-c", HOLDER, str(path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
    assert process.stdout.readline() == "held\n"
    yield process, path
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_living_workers_claim_is_respected_and_a_dead_ones_is_taken_at_once(holder):
    process, path = holder
    with Leases("mine") as leases:
        assert leases.take(path) is None
        process.kill()
        process.wait()
        assert leases.take(path)["pid"] == process.pid
        assert leases.take(path) is None


def test_a_claim_from_elsewhere_is_stale_when_it_has_not_been_touched_for_a_while(holder):
    _, path = holder
    path.write_text(path.read_text().replace('"machine":"', '"machine":"another '))
    os.utime(path, (time.time() + 1e6,) * 2)  # its host's clock is wrong
    with Leases("mine", stale_s=0.2) as leases:
        assert leases.take(path) is None
        os.utime(path, (time.time() - 1e6,) * 2)  # touched: somebody lives
        time.sleep(0.3)
        assert leases.take(path) is None
        time.sleep(0.3)
        assert leases.take(path)["machine"].startswith("another")


def test_what_is_held_is_touched_and_freed_at_the_end(tmp_path):
    path = tmp_path / "lease.json"
    with Leases("mine", beat_s=0.05) as leases:
        leases.take(path)
        os.utime(path, (0, 0))
        deadline = time.monotonic() + 300
        while path.stat().st_mtime < 1:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    assert not path.exists()


def test_staleness_counts_from_the_last_sign_of_life_that_was_seen(holder, monkeypatch):
    _, path = holder
    path.write_text(path.read_text().replace('"machine":"', '"machine":"another '))
    clock = {"now": 1000.0}
    monkeypatch.setattr("hfd.jobs.lease.time.monotonic", lambda: clock["now"])
    leases = Leases("mine", stale_s=60)

    def after(seconds: float):
        clock["now"] += seconds
        return leases.take(path)

    assert after(0) is None  # seen for the first time
    assert after(60) is None  # not yet longer than that
    os.utime(path, (1, 1))
    assert after(0.1) is None  # a sign of life: its minute begins again
    assert after(59.9) is None
    assert after(0.2)["machine"].startswith("another")


def test_a_lease_that_was_renewed_while_it_was_being_taken_away_is_put_back(tmp_path):
    path = tmp_path / "lease.json"
    dead = {"token": "of the dead", "pid": 1, "started": "1", "machine": "elsewhere"}
    with Leases("renewer") as renewer, Leases("mine") as leases:
        assert renewer.take(path) == {}  # another worker was faster than this one's look
        leases._remove(path, dead)
        assert leases.take(path) is None
        renewer.free(path)
        assert not path.exists()  # it was still the renewer's own
    assert list(tmp_path.iterdir()) == []
