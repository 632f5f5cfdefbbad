"""How busy the machine was while a sample ran."""

import os
from pathlib import Path

import pytest

from hfd.stream.machine import MachineWatch, cpu_model

TICK = os.sysconf("SC_CLK_TCK")


class Proc:
    """A /proc of one's own: this process, a child of it, and the rest of the machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.set(machine_s=0, own_s=0, child_s=0, waited_s=0)

    def set(self, machine_s: float, own_s: float, child_s: float, waited_s: float) -> None:
        self.folder.mkdir(exist_ok=True)
        busy = round(machine_s * TICK)
        (self.folder / "stat").write_text(f"cpu  {busy} 0 0 999999 7 0 0 0 0 0\ncpu0 1 2 3\n")
        self._process(os.getpid(), 1, own_s, waited_s)
        self._process(999_999, os.getpid(), child_s, 0)
        self._process(888_888, 1, 12345, 99)  # somebody else's

    def _process(self, pid: int, parent: int, used_s: float, waited_s: float) -> None:
        task = self.folder / str(pid) / "task" / str(pid)
        task.mkdir(parents=True, exist_ok=True)
        fields = ["S", parent, *[0] * 9, round(used_s * TICK), 0, 0, 0, *[0] * 10]
        (task.parents[1] / "stat").write_text(f"{pid} (a (b) c) " + " ".join(map(str, fields)))
        (task / "schedstat").write_text(f"1 {round(waited_s * 1e9)} 3\n")


@pytest.fixture
def watch(tmp_path, monkeypatch):
    """What is found after ten seconds on four cores in which these many seconds were used."""
    proc, clock = Proc(tmp_path / "proc"), {"now": 100.0}
    monkeypatch.setattr("hfd.stream.machine.time.monotonic", lambda: clock["now"])
    monkeypatch.setattr("hfd.stream.machine.os.cpu_count", lambda: 4)

    def facts(**seconds: float):
        found = MachineWatch(proc.folder)
        clock["now"] += 10
        proc.set(**seconds)
        return found.facts()

    return facts


def test_a_run_alone_is_not_busy_however_much_it_computes(watch):
    found = watch(machine_s=38, own_s=20, child_s=18, waited_s=15)
    assert (found["others_cpu"], found["waited_s"], found["busy"]) == (0.0, 15.0, False)


def test_others_that_take_nothing_away_are_no_matter(watch):
    found = watch(machine_s=25, own_s=5, child_s=0, waited_s=0.1)
    assert (found["others_cpu"], found["busy"]) == (0.5, False)


def test_a_run_that_others_kept_waiting_is_marked(watch):
    found = watch(machine_s=39, own_s=5, child_s=4, waited_s=3)
    assert (found["others_cpu"], found["waited_s"], found["busy"]) == (0.75, 3.0, True)


def test_where_the_system_does_not_say_nothing_is_claimed(tmp_path):
    assert MachineWatch(tmp_path / "none").facts() == {}
    assert cpu_model(tmp_path / "none") is None


def test_this_machine_says_it():
    found = MachineWatch().facts()
    assert found["waited_s"] >= 0 and 0 <= found["others_cpu"] <= 1
