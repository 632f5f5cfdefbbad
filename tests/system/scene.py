"""One fault played on a real Slurm: run, break, mend, run again, and look at what was lost."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from hfd.work.store import verify
from tests.system.cluster import Cluster
from tests.workflow.desk import REPO, Desk, Started

NAMES = [f"s{number:02d}" for number in range(12)]
MODEL = "loud"
FAST = (
    "--slurm-init-seconds-before-status-checks=2", "--seconds-between-status-checks=2",
    "--slurm-status-command=squeue", "--slurm-no-account",
)  # fmt: skip
"""For a cluster without accounting, and jobs of seconds."""


@dataclass
class Row:
    """One line of docs/faults.md."""

    fault: str
    first_run: str
    twice: int
    allowed: int
    loads: int

    def __str__(self) -> str:
        cells = (self.fault, self.first_run, self.twice, self.allowed, self.loads)
        return f"| {' | '.join(map(str, cells))} |"


HEAD = """# Fault matrix

Written by `make test-system` (tests/system/test_faults.py) on a real Slurm of one node with four
fake GPUs; twelve samples in four shards if nothing else is said. After every fault the next run
completed, and no wrong or half file was visible under results/ whenever it was looked at (every
second).

| fault | first run | samples computed twice | allowed | model loads in the next run |
|---|---|---|---|---|
"""


@dataclass
class FaultTable:
    """The rows of docs/faults.md; a row that is played again takes the place of the old one."""

    path: Path
    rows: dict[str, Row] = field(default_factory=dict)

    def write(self) -> None:
        old = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        lines = {line.split(" | ")[0][2:]: line for line in old[HEAD.count("\n") :]}
        lines |= {fault: str(row) for fault, row in self.rows.items()}
        self.path.write_text(HEAD + "\n".join(lines.values()) + "\n", encoding="utf-8")


@dataclass
class Scene:
    """A desk on a cluster, with the test model."""

    cluster: Cluster
    desk: Desk
    table: FaultTable

    def set_model(self, **settings: object) -> None:
        """Four shards: the pilot's two samples, then four, four and two of 4 s each."""
        self.desk.add_model(MODEL, shard_minutes=16.5 / 60, pace_s=0.15, **settings)
        self.desk.models[MODEL]["resources"] |= {"gpu": 1, "mem_mb": 900}

    def no_faults(self) -> None:
        """Whatever was wrong with the samples is mended."""
        self.desk.faults(MODEL)

    def shift_files_into_the_future(self, days: float) -> None:
        """What a clock that was set back looks like to every later run."""
        for path in [*self.desk.path.rglob("*")]:
            if path.is_file() and not path.is_symlink():
                stat = path.stat()
                os.utime(path, (stat.st_atime + days * 86400, stat.st_mtime + days * 86400))

    def use_clone_of_repository(self) -> None:
        """Run from a clone, whose code a test may change."""
        clone = self.desk.path.parent / "clone"
        subprocess.run(["git", "clone", "--quiet", str(REPO), str(clone)], check=True)
        self.desk.repository = clone

    def change_code(self) -> None:
        """Commit a harmless change of a script and of a rule."""
        clone = self.desk.repository
        for name in ("scripts/infer_shard.py", "scripts/hfd/work/worker.py"):
            with (clone / name).open("a") as script:
                script.write("\n# changed\n")
        author = ["-c", "user.name=test", "-c", "user.email=test@localhost"]
        subprocess.run(["git", "-C", clone, *author, "commit", "-qam", "change"], check=True)

    def start(self, target: str = f"results_{MODEL}") -> Started:
        return self.desk.start(target, *FAST)

    def run(self, target: str = f"results_{MODEL}", ok: bool | None = True) -> str:
        return self.desk.run(target, *FAST, ok=ok)

    def wait_for_begun(self, count: int, run: Started) -> None:
        """Wait until the model has begun `count` samples."""
        while self.desk.calls(MODEL).total() < count:
            assert run.process.poll() is None, run.log.read_text()
            self.results_are_whole()
            time.sleep(0.1)

    def watch_to_the_end(self, run: Started, damaged: str | None = None) -> str:
        """Wait for a run's end; whatever is visible under results/ meanwhile must be whole."""
        while run.process.poll() is None:
            self.results_are_whole(but=damaged)
            time.sleep(1)
        return run.end()

    def results_are_whole(self, but: str | None = None) -> None:
        for path in (self.desk.path / "results").glob("*/*/result.json"):
            if path.parent.name == but:
                continue
            try:
                verify(path.parent)
            except Exception:
                if path.exists():  # else it was withdrawn to be published anew
                    raise

    def busy_workers(self) -> list[int]:
        """Process ids of workers with a sample in hand."""
        open_samples: dict[int, str] = {}
        for line in (self.desk.path / f"{MODEL}.calls").read_text().splitlines():
            what, sample, pid, _ = json.loads(line)
            if what == "begin":
                open_samples[pid] = sample
            elif what == "end":
                open_samples.pop(pid, None)
        return [pid for pid in open_samples if Path(f"/proc/{pid}").exists()]

    def play(
        self,
        fault: str,
        strike: Callable[[Started], None],
        *,
        mend: Callable[[], None] = lambda: None,
        begun: int = 3,
        allowed: int = 4,
        names: list[str] = NAMES,
    ) -> str:
        """Strike in mid-run, mend, run again; return what the first run printed.

        Args:
            allowed: samples in flight that may be lost: one for each worker that was struck.
        """
        run = self.start()
        self.wait_for_begun(begun, run)
        strike(run)
        output = self.watch_to_the_end(run)
        mend()
        self.finish(fault, _outcome(run), allowed, names)
        return output

    def finish(
        self,
        fault: str,
        first_run: str,
        allowed: int,
        names: list[str] = NAMES,
        damaged: str | None = None,
    ) -> None:
        """The second run: it completes, everything is whole, little was done twice.

        Args:
            damaged: a sample whose published files the test itself has damaged.
        """
        loads = self.desk.calls(MODEL, "load").total()
        output = self.watch_to_the_end(second := self.start(), damaged)
        assert second.process.returncode == 0, output
        assert self.desk.results(MODEL) == set(names)
        self.results_are_whole()
        twice = self.desk.calls(MODEL).total() - len(names)
        loads = self.desk.calls(MODEL, "load").total() - loads
        self.table.rows[fault] = Row(fault, first_run, twice, allowed, loads)
        assert twice <= allowed
        assert "Nothing to be done" in self.run()


def _outcome(run: Started) -> str:
    code = run.process.returncode
    return (
        "completed" if code == 0 else "was killed" if code < 0 else f"ended with exit code {code}"
    )


def kill(pids: list[int], how: int) -> None:
    for pid in pids:
        os.kill(pid, how)
