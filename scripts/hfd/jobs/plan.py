"""Which samples one GPU job computes: shards that are filled by work, not by count.

The first plan is a pure function of the manifest. Later plans move the samples that have to be done
to shards of their own, so that seven missing samples of seven shards become one job with one model
load, and leave all others where they are: nothing of theirs is computed or published again. Every
shard ever planned stays in work/<model>/plan.json under a name that is never reused: a cluster node
that parses the Snakefile while another plan is made still finds the members of its own shard.
"""

from __future__ import annotations

import fcntl
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hfd.files import canonical_json, read_json, sha256_bytes, write_json

STORE_ONLY = "store"
"""End of the name of a shard whose samples are all finished and need no GPU."""


@dataclass(frozen=True)
class Job:
    """One sample as the planner sees it.

    Attributes:
        sample_id: the sample.
        group: samples of different groups share a shard only when all work fits one job.
        alone: its group never shares a shard (the pilot's samples).
        work_s: expected seconds of computing, 0 if a valid result exists.
    """

    sample_id: str
    group: str
    alone: bool
    work_s: float


@dataclass(frozen=True)
class Plan:
    """Shards by name, in the order in which they were planned.

    The last one that has a sample owns it.
    """

    generation: int = 0
    shards: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def owners(self) -> dict[str, str]:
        """Name of the shard by sample id."""
        return {sample: name for name, members in self.shards.items() for sample in members}


def read_plan(path: Path) -> Plan:
    """The plan in a file; an empty one if there is none yet."""
    if not path.exists():
        return Plan()
    value = read_json(path)
    return Plan(value["generation"], value["shards"])


def save_plan(path: Path, plan: Plan) -> None:
    """Add a plan's shards to the file; what another run added meanwhile stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        saved = read_plan(path)
        shards = {**saved.shards, **plan.shards}
        if shards != saved.shards:
            generation = max(saved.generation, plan.generation)
            write_json(path, {"generation": generation, "shards": shards})


def make_plan(
    previous: Plan, jobs: Sequence[Job], open_ids: Iterable[str], target_s: float
) -> Plan:
    """Plan the samples that have to be (re)done; every other one keeps its shard.

    Args:
        previous: the plan so far.
        jobs: every sample of the manifest, in its order.
        open_ids: samples that need a shard to run: no valid result, a damaged published one, or a
            shard that did not end.
        target_s: seconds of computing that fill one shard.

    Returns:
        `previous` itself if nothing is open, else a plan of the next generation.
    """
    owners, opened = previous.owners(), set(open_ids)
    pool = [job for job in jobs if job.sample_id in opened or job.sample_id not in owners]
    if not pool:
        return previous
    generation = previous.generation + 1
    fresh = {}
    for number, members in enumerate(_fill(pool, target_s)):
        ids = [job.sample_id for job in members]
        kind = f"{number:04d}" if any(job.work_s for job in members) else STORE_ONLY
        digest = sha256_bytes(canonical_json(ids).encode())[:8]
        fresh[f"g{generation}-{digest}-{kind}"] = ids
    return Plan(generation, {**previous.shards, **fresh})


def _fill(pool: Sequence[Job], target_s: float) -> list[list[Job]]:
    """Cut the pool, group by group, into shards of at most `target_s` (or one sample)."""
    groups: dict[str, list[Job]] = {}
    shared = [job for job in pool if not job.alone]
    one_job = sum(job.work_s for job in shared) <= target_s
    for job in pool:
        groups.setdefault("shared" if one_job and not job.alone else job.group, []).append(job)
    shards: list[list[Job]] = []
    for members in groups.values():
        shard: list[Job] = []
        filled = 0.0
        for job in members:
            if shard and job.work_s and filled + job.work_s > target_s:
                shards.append(shard)
                shard, filled = [], 0.0
            shard.append(job)
            filled += job.work_s
        shards.append(shard)
    return shards
