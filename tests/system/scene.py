"""Faults played on a real Slurm: run, break, mend, run again, and look at what was lost."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hfd.jobs.lease import is_dead
from hfd.jobs.store import FILES, Store, verify
from tests.system.cluster import ACCOUNT, Cluster
from tests.workflow.desk import Desk, Started
from tests.workflow.repository import AUTHOR, clone_repository

NAMES = [f"s{number:02d}" for number in range(8)]
SHARDS = 2
"""Shards of one model that runs until it is struck: the pilot's four samples, the other four."""
FAST = ("--slurm-init-seconds-before-status-checks=2", "--seconds-between-status-checks=2")
"""For jobs of seconds."""


@dataclass(frozen=True)
class Fault:
    """What befalls one model. Several faults share a run, each with a model of its own.

    Attributes:
        text: its row in docs/faults.md.
        model: the model's name.
        strike: called once, when the model has begun `begun` samples, or the sample of that name.
        mend: called after the first run.
        allowed: samples in flight that may be computed twice: one for each worker that is struck.
    """

    text: str
    model: str
    strike: Callable[[Started], None] = lambda run: None
    mend: Callable[[], None] = lambda: None
    allowed: int = 1
    begun: int | str = 2


@dataclass
class Table:
    """The table at the end of a page of docs/; a row that is measured again takes its place.

    A run of the tests changes no tracked file: the page with the new rows is written beside the
    test's files, or into the folder that ``$HFD_TABLES`` names (``HFD_TABLES=docs`` renews them).

    Attributes:
        page: the page in docs/.
        folder: where the new page is written.
    """

    page: Path
    folder: Path
    rows: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, *cells: object) -> None:
        self.rows[name] = f"| {' | '.join(map(str, (name, *cells)))} |"

    def write(self) -> None:
        text = self.page.read_text(encoding="utf-8")
        head, rule, old = text.rpartition("---|\n")
        rows = {line.split(" | ")[0][2:]: line for line in old.splitlines()} | self.rows
        target = Path(os.environ.get("HFD_TABLES", self.folder)) / self.page.name
        target.write_text(head + rule + "\n".join(rows.values()) + "\n", encoding="utf-8")
        print(f"measured rows: {target}")


@dataclass
class Scene:
    """A desk on a cluster, with test models."""

    cluster: Cluster
    desk: Desk
    table: Table
    _whole: set[tuple[Any, ...]] = field(default_factory=set)

    def add_model(self, name: str, shards: int = SHARDS, pace_s: float = 0.15) -> str:
        self.desk.config = {"pilot_n": len(NAMES) // shards}
        self.desk.add_model(name, pace_s=pace_s)
        self.desk.models[name]["resources"] |= {"gpu": 1, "mem_mb": 900, "slurm_account": ACCOUNT}
        return name

    def add_held(self, name: str) -> str:
        """A model that waits in each shard until it is struck, late as that may be."""
        self.add_model(name)
        self.desk.faults(name, hold=[NAMES[1], NAMES[5]])
        return name

    def mend(self, model: str) -> Callable[[], None]:
        """Whatever was wrong with the samples of a model is put right."""
        return lambda: self.desk.faults(model)

    def shift_files_into_the_future(self, days: float) -> None:
        """What a clock that was set back looks like to every later run."""
        for path in [*self.desk.path.rglob("*")]:
            if path.is_file() and not path.is_symlink():
                stat = path.stat()
                os.utime(path, (stat.st_atime + days * 86400, stat.st_mtime + days * 86400))

    def use_clone_of_repository(self) -> None:
        """Run from a clone, whose code a test may change."""
        self.desk.repository = clone_repository(self.desk.path.parent / "clone")

    def change_code(self) -> None:
        """Commit a harmless change of a script and of a rule."""
        clone = self.desk.repository
        for name in ("scripts/infer.py", "scripts/hfd/jobs/worker.py"):
            with (clone / name).open("a") as script:
                script.write("\n# changed\n")
        subprocess.run(["git", "-C", clone, *AUTHOR, "commit", "-qam", "change"], check=True)

    def start(self, *models: str) -> Started:
        return self.desk.start(*(f"results_{model}" for model in models), *FAST)

    def run(self, *targets: str, ok: bool | None = True) -> str:
        return self.desk.run(*targets, *FAST, ok=ok)

    def in_hand(self, model: str, sample: str | None = None) -> dict[str, Any]:
        """Wait for a worker with a sample (or this one) in hand; return its process and job."""
        return in_hand(Store(self.desk.path, model), sample)

    def send(self, how: int, model: str) -> Callable[[Started], None]:
        """The strike that sends a signal to a worker with a sample in hand."""

        def strike(run: Started) -> None:
            os.kill(self.in_hand(model)["pid"], how)
            self.desk.faults(model)

        return strike

    def play(self, *faults: Fault) -> None:
        """Run all the models at once, strike each in mid-run, mend, and run again."""
        run = self.start(*(fault.model for fault in faults))
        waiting = list(faults)
        for _ in run.turns(every_s=0.3):
            for fault in [f for f in waiting if self._has_begun(f)]:
                fault.strike(run)
                waiting.remove(fault)
            self.results_are_whole()
        assert not waiting, run.log.read_text()
        for fault in faults:
            fault.mend()
        self.finish(*faults)

    def _has_begun(self, fault: Fault) -> bool:
        calls = self.desk.calls(fault.model)
        if isinstance(fault.begun, str):
            return calls[fault.begun] > 0
        return calls.total() >= fault.begun

    def finish(
        self, *faults: Fault, names: Sequence[str] = NAMES, damaged: str | None = None
    ) -> None:
        """The next run: it completes, everything is whole, little was done twice.

        Args:
            damaged: a model whose published files the test itself has damaged.
        """
        models = [fault.model for fault in faults]
        first = {model: len(self.desk.results(model)) for model in models}
        loads = {model: self.loads(model) for model in models}
        second = self.start(*models)
        for _ in second.turns(every_s=1):
            self.results_are_whole(but=damaged)
        assert second.process.returncode == 0, second.log.read_text()
        self.results_are_whole()
        for fault in faults:
            assert self.desk.results(fault.model) == set(names)
            twice = self.desk.calls(fault.model).total() - len(names)
            again = self.loads(fault.model) - loads[fault.model]
            delivered = f"delivered {first[fault.model]} of {len(names)}"
            self.table.add(fault.text, delivered, twice, fault.allowed, again)
            assert twice <= fault.allowed, fault
        assert "Nothing to be done" in self.run(*(f"results_{model}" for model in models))

    def loads(self, model: str) -> int:
        return self.desk.calls(model, "load").total()

    def results_are_whole(self, but: str | None = None) -> None:
        """Whatever is visible under results/ is whole (each version of it is read once)."""
        for path in (self.desk.path / "results").glob("*/*/result.json"):
            if path.parents[1].name == but:
                continue
            for last in (False, True):
                try:
                    seen = tuple(_version(path.parent / name) for name in FILES)
                    if seen not in self._whole:
                        verify(path.parent)
                        self._whole.add(seen)
                    break
                except Exception:
                    if not path.exists():  # it was withdrawn to be published anew
                        break
                    if last:
                        raise
                    time.sleep(1)  # it may have been published anew during this look


def in_hand(
    store: Store, sample: str | None = None, but: Sequence[str | None] = ()
) -> dict[str, Any]:
    """Wait for a worker with a sample (or this one) in hand, in none of the jobs `but`."""
    name = store.lease(sample).name if sample else "[!.]*.json"
    for _ in range(3000):
        for path in (store.folder / "leases").glob(name):
            try:
                owner = json.loads(path.read_text())
            except FileNotFoundError:  # it has just been freed
                continue
            if owner["job"] not in but and not is_dead(owner):
                return owner
        time.sleep(0.1)
    raise AssertionError(f"no worker of {store.model} is at work")


def results_are_whole(results: Path) -> None:
    """Every visible result is whole."""
    for path in results.glob("*/*/result.json"):
        verify(path.parent)


def _version(path: Path) -> tuple[Any, ...]:
    stat = path.stat()
    return str(path), stat.st_ino, stat.st_size, stat.st_mtime_ns
