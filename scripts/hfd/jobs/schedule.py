"""The workflow's view of the work: samples, models, and which shard computes what.

The Snakefile makes one `Schedule` when it is parsed. Parsing writes nothing and looks at no model;
one is looked at when the first of its files is asked for. The main process plans in memory and
saves the plan when the run starts; a cluster node reads what was saved.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hfd.data.manifest import HESITATION, Sample, read_manifest
from hfd.errors import HfdError
from hfd.jobs.advice import doubtful_tasks
from hfd.jobs.hashes import HashCache, signature
from hfd.jobs.plan import Job, Plan, make_plan, read_plan, save_plan
from hfd.jobs.spec import ModelSpec
from hfd.jobs.status import Expectation, State, read_states, table
from hfd.jobs.store import Store, failed_in

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
        self._plan_anew = plan_anew
        self._manifest = Path(config["manifest"])
        found = (root / self._manifest).exists()
        self._samples = read_manifest(root / self._manifest, root, False) if found else []
        self._by_id = {sample.sample_id: sample for sample in self._samples}
        self._hashes = HashCache(Store(root, "").hashes, read_only=True)
        self._states: dict[str, list[State]] = {}
        self._plans: dict[str, Plan] = {}
        self._owners: dict[str, dict[str, str]] = {}
        self._tickets: dict[str, Path] = {}

    def samples(self) -> Sequence[Sample]:
        """Every sample of the manifest, in its order.

        Raises:
            HfdError: there is no manifest yet.
        """
        if not self._samples:
            raise HfdError(
                "is missing",
                file=self._manifest,
                remedy="Put the data set into data/ (data/README.md), or try: make demo",
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
        return ModelSpec.from_config(self._config, model)

    def ticket(self, model: str, sample_id: str) -> str:
        """The ticket of the shard that computes a sample."""
        if model not in self._plans:
            self._plan(model)
        shard = self._owners[model].get(sample_id)
        if shard is None or sample_id not in self._by_id:
            raise HfdError(f"has no sample {sample_id!r}", file=self._manifest)
        return f"{self._tickets[model]}/{shard}.ticket"

    def ended(self, model: str) -> list[str]:
        """Shards that have a ticket.

        Nothing makes it again: what has to be done anew is planned into a shard of its own.
        """
        return sorted(path.stem for path in self.store(model).ticket("x").parent.glob("*.ticket"))

    def generation(self, model: str) -> int:
        """The number of the present plan."""
        return self._plan(model).generation

    def members(self, model: str, shard: str) -> list[Sample]:
        """The samples of a shard that the manifest still has.

        Raises:
            HfdError: the plan has no such shard.
        """
        plan = self._plan(model)
        if shard not in plan.shards:
            raise HfdError("has no such shard", file=self.store(model).plan, field=shard)
        return [self._by_id[name] for name in plan.shards[shard] if name in self._by_id]

    def minutes(self, model: str, shard: str) -> int:
        """Minutes to ask of a scheduler for one shard: load time, work, and a margin."""
        entry = self._config["models"][model]
        work = sum(self._work_s(entry, sample) for sample in self.members(model, shard)) / 60
        work = min(work, self._target_s(entry) / 60)
        return math.ceil((entry["load_minutes"] + work) * SAFETY) + SPARE_MINUTES

    def checked_files(self, sample_id: str) -> list[str]:
        """A sample's video and adapter, as far as they are there: a missing one is a verdict."""
        return [str(path) for path in self._files(sample_id) if path.is_file()]

    def content(self, sample_id: str) -> list[list[int] | None]:
        """What tells cheaply that a sample's video or adapter was replaced or deleted."""
        return [signature(path) for path in self._files(sample_id)]

    def save(self, models: Iterable[str]) -> None:
        """Write the plans of the models this run computes, before its first job starts."""
        for model in set(models) & set(self._plans):
            save_plan(self.store(model).plan, self._plans[model])
        self.save_hashes()

    def save_hashes(self) -> None:
        """Write down which files were hashed, so that the next run need not."""
        if self._store_exists():
            self._hashes.save()

    def doubts(self) -> list[str]:
        """What in the manifest is probably a slip."""
        return doubtful_tasks(self._samples)

    def table(self, models: Iterable[str] | None = None, anew: bool = False) -> str:
        """Expected, done, failed and missing samples of models, and why.

        Args:
            models: their names; without, those that this run has asked for.
            anew: look again (after a run).
        """
        if not self._samples:
            return f"{self._manifest}: no samples yet"
        if anew:
            self._hashes = HashCache(Store(self._root, "").hashes, read_only=True)
        names = list(self._states) if models is None else list(models)
        return table(
            {
                model: self._look(model)
                if anew or model not in self._states
                else self._states[model]
                for model in names
            }
        )

    def models_seen(self) -> list[str]:
        """The models that this run has asked for."""
        return list(self._states)

    def _files(self, sample_id: str) -> list[Path]:
        sample = self.sample(sample_id)
        return [path for path in (sample.video, sample.adapter) if path]

    def _store_exists(self) -> bool:
        return (self._root / "work").is_dir()

    def _plan(self, model: str) -> Plan:
        """The plan of a model, made or read when it is first asked for."""
        if model not in self._plans:
            saved = read_plan(self.store(model).plan)
            self._plans[model] = self._planned(model) if self._plan_anew else saved
            self._owners[model] = self._plans[model].owners()
            self._tickets[model] = self.store(model).ticket("x").parent
        return self._plans[model]

    def _look(self, model: str) -> list[State]:
        expected = Expectation(self.spec(model), self._root, self._hashes)
        return read_states(self.store(model), self._samples, expected)

    def _planned(self, model: str) -> Plan:
        entry, store = self._config["models"][model], self.store(model)
        states = self._states[model] = self._look(model)
        saved = read_plan(store.plan)
        owners = saved.owners()
        ended = set(self.ended(model)) & set(owners.values())
        failed = {name for shard in ended for name in failed_in(store.ticket(shard))}
        open_ids = [
            state.sample_id
            for state in states
            if state.needs_work
            or state.damaged
            or owners.get(state.sample_id) not in ended
            or (state.kind == "ready" and state.sample_id in failed)
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
