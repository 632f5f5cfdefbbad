"""The workflow's view of the work: samples, models, and which shard computes what.

The Snakefile makes one `Schedule` when it is parsed. Parsing writes nothing: the main process plans
in memory and saves the plan when the run starts; a cluster node reads what was saved.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hfd.data.manifest import HESITATION, Sample, read_manifest
from hfd.errors import HfdError
from hfd.jobs.hashes import HashCache
from hfd.jobs.plan import Job, Plan, make_plan, read_plan, save_plan
from hfd.jobs.spec import ModelSpec
from hfd.jobs.status import Expectation, State, read_states, table
from hfd.jobs.store import Store

SAFETY = 1.5
"""Time asked of a scheduler, over the expected time."""
SPARE_MINUTES = 10


class Schedule:
    """All configured models against the manifest.

    Args:
        config: the checked configuration; ``models`` included.
        root: the working folder.
        plan_anew: look at what exists and plan anew (main process), or read the saved plans
            (cluster node).

    Raises:
        HfdError: the manifest is bad, or an input that a finished result needs cannot be read.
    """

    def __init__(self, config: Mapping[str, Any], root: Path, plan_anew: bool) -> None:
        self._config, self._root = config, root
        self._manifest = Path(config["manifest"])
        found = (root / self._manifest).exists()
        self._samples = read_manifest(root / self._manifest, root, False) if found else []
        self._by_id = {sample.sample_id: sample for sample in self._samples}
        self._states: dict[str, list[State]] = {}
        self._plans = {
            model: self._planned(model) if plan_anew else read_plan(self.store(model).plan)
            for model in config["models"]
        }
        self._owners = {model: plan.owners() for model, plan in self._plans.items()}

    def samples(self) -> Sequence[Sample]:
        """Every sample of the manifest, in its order.

        Raises:
            HfdError: there is no manifest yet.
        """
        if not self._samples:
            raise HfdError(
                "is missing",
                file=self._manifest,
                remedy="Put the data set into data/ (data/README.md), or try `snakemake demo`",
            )
        return self._samples

    def ids(self) -> list[str]:
        return [sample.sample_id for sample in self.samples()]

    def pilot_ids(self) -> list[str]:
        """The first samples, which are run before all others."""
        return self.ids()[: self._config["pilot_n"]]

    def sample(self, sample_id: str) -> Sample:
        """A sample by its id.

        Raises:
            HfdError: the manifest has none of that id.
        """
        if sample_id not in self._by_id:
            raise HfdError(f"has no sample {sample_id!r}", file=self._manifest)
        return self._by_id[sample_id]

    def store(self, model: str) -> Store:
        return Store(self._root, model)

    def spec(self, model: str) -> ModelSpec:
        """What the worker is told of a model."""
        entry = self._config["models"][model]
        return ModelSpec(
            name=model,
            module=entry["module"],
            settings=entry["settings"],
            seed=self._config["seed"],
            voice_origin=entry["voice_origin"],
            weights=tuple(entry["weights"]),
            rerun_on=tuple(self._config["rerun_on"]),
        )

    def ticket(self, model: str, sample_id: str) -> str:
        """The ticket of the shard that computes a sample."""
        self.sample(sample_id)
        return str(self.store(model).ticket(self._owners[model][sample_id]))

    def members(self, model: str, shard: str) -> list[Sample]:
        """The samples of a shard that the manifest still has.

        Raises:
            HfdError: the plan has no such shard.
        """
        plan = self._plans[model]
        if shard not in plan.shards:
            raise HfdError("has no such shard", file=self.store(model).plan, field=shard)
        return [self._by_id[name] for name in plan.shards[shard] if name in self._by_id]

    def minutes(self, model: str, shard: str) -> int:
        """Minutes to ask of a scheduler for one shard: load time, work, and a margin."""
        entry = self._config["models"][model]
        work = sum(self._work_s(entry, sample) for sample in self.members(model, shard)) / 60
        work = min(work, self._target_s(entry) / 60)
        return math.ceil((entry["load_minutes"] + work) * SAFETY) + SPARE_MINUTES

    def save_plans(self, models: Iterable[str]) -> None:
        """Write the plans of the models this run computes, before its first job starts."""
        for model in set(models) & set(self._plans):
            save_plan(self.store(model).plan, self._plans[model])

    def table(self) -> str:
        """Expected, done, failed and missing samples of every model, and why."""
        if not self._samples:
            return f"{self._manifest}: no samples yet"
        return table(self._states)

    def _planned(self, model: str) -> Plan:
        entry, store = self._config["models"][model], self.store(model)
        expected = Expectation(
            self.spec(model), self._root, HashCache(self._root / "work" / "hashes", read_only=True)
        )
        states = self._states[model] = read_states(store, self._samples, expected)
        saved = read_plan(store.plan)
        owners = saved.owners()
        unfinished = {name for name in set(owners.values()) if not store.ticket(name).exists()}
        open_ids = [
            state.sample_id
            for state in states
            if state.needs_work or state.damaged or owners.get(state.sample_id) in unfinished
        ]
        pilot = {sample.sample_id for sample in self._samples[: self._config["pilot_n"]]}
        jobs = [
            Job(
                sample.sample_id,
                group=_group(sample, pilot),
                alone=sample.sample_id in pilot,
                work_s=self._work_s(entry, sample) if state.needs_work else 0.0,
            )
            for sample, state in zip(self._samples, states, strict=True)
        ]
        return make_plan(saved, jobs, open_ids, self._target_s(entry))

    def _work_s(self, entry: Mapping[str, Any], sample: Sample) -> float:
        return sample.duration_seconds * entry["compute_per_media_s"]

    def _target_s(self, entry: Mapping[str, Any]) -> float:
        """Seconds of computing in one shard, the load time taken off."""
        minutes = entry["shard_minutes"] or self._config["shard_minutes"]
        return max(minutes - entry["load_minutes"], 1 / 60) * 60


def _group(sample: Sample, pilot: set[str]) -> str:
    if sample.sample_id in pilot:
        return "pilot"
    return HESITATION if sample.task == HESITATION else "other"
