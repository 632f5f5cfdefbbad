"""What exists, what is missing, and why: one model against the manifest."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hfd.data.manifest import Sample
from hfd.errors import HfdError
from hfd.jobs.hashes import HashCache
from hfd.jobs.spec import ModelSpec, Recipe
from hfd.jobs.store import Store, glance, sizes
from hfd.stream.provenance import code_version

Kind = Literal["done", "ready", "stale", "failed", "missing"]


@dataclass(frozen=True)
class State:
    """Where one sample of one model stands.

    Attributes:
        kind: ``done`` (published, valid), ``ready`` (finished, to be published), ``stale`` (made
            from other inputs or settings), ``failed`` (last attempt), ``missing`` (never run).
        why: one phrase; for a failure its error.
        damaged: it is published, but its files are not those that were finished.
    """

    sample_id: str
    kind: Kind
    why: str
    damaged: bool = False

    @property
    def needs_work(self) -> bool:
        """Whether the model has to run for it."""
        return self.kind in ("stale", "failed", "missing")


class Expectation:
    """The fingerprints that valid results of one model have now."""

    def __init__(self, spec: ModelSpec, root: Path, hashes: HashCache) -> None:
        self.spec, self._root, self._hashes = spec, root, hashes

    @functools.cached_property
    def recipe(self) -> Recipe:
        """The model's share; weight files are hashed when it is first asked for."""
        weights = {name: self._hashes.sha256_tree(self._root / name) for name in self.spec.weights}
        code = code_version() if "code" in self.spec.rerun_on else {}
        return Recipe(
            self.spec.module,
            self.spec.settings,
            self.spec.seed,
            weights,
            code and f"{code['commit']} {code['dirty_diff_sha256']}",
        )

    def inputs(self, sample: Sample) -> tuple[str, str | None]:
        """Hashes of a sample's video and adapter."""
        adapter = self._hashes.sha256(sample.adapter) if sample.adapter else None
        return self._hashes.sha256(sample.video), adapter

    def fingerprint(self, sample: Sample) -> str:
        return self.recipe.fingerprint(*self.inputs(sample))

    def difference(self, sample: Sample, provenance: dict[str, Any]) -> str:
        """Which input of a result has changed since it was made."""
        model, made_of = provenance["model"], provenance["input"]
        video, adapter = self.inputs(sample)
        changed = []
        if made_of["video_sha256"] != video:
            changed.append("its video")
        if made_of["adapter_sha256"] != adapter:
            changed.append("its adapter")
        if model["module"] != self.spec.module:
            changed.append("the model's module")
        old, new = model["settings"], dict(self.spec.settings)
        keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
        changed += [f"setting {key}" for key in keys]
        other = ["seed or weights", *(["code"] if self.spec.rerun_on else [])]
        return f"{', '.join(changed or other)} changed"


def read_states(store: Store, samples: Sequence[Sample], expected: Expectation) -> list[State]:
    """The state of every sample, in the manifest's order; reads, never writes."""
    if not store.folder.exists() and not (store.root / "results" / store.model).exists():
        return [State(sample.sample_id, "missing", "never run") for sample in samples]
    return [_state(store, sample, expected) for sample in samples]


def _state(store: Store, sample: Sample, expected: Expectation) -> State:
    name = sample.sample_id
    stored, shown = glance(store.entry(name)), glance(store.published(name))
    made = [provenance for provenance in (stored, shown) if provenance]
    try:
        wanted = expected.fingerprint(sample) if made else None
    except HfdError as error:
        return State(name, "missing", str(error))
    valid = [provenance for provenance in made if provenance["fingerprint"] == wanted]
    if valid:
        published = sizes(store.published(name))
        whole = published == sizes(store.entry(name)) if stored in valid else True
        if shown in valid and whole:
            return State(name, "done", "published")
        return State(name, "ready", "finished, to be published", damaged=published[-1] != -1)
    if error := store.error(name):
        return State(name, "failed", error["error"])
    if made:
        return State(name, "stale", expected.difference(sample, made[0]))
    return State(name, "missing", "never run")


def table(states: dict[str, list[State]], shown_ids: int = 8) -> str:
    """The table of all models, then for each the reasons with the ids they concern.

    Args:
        states: `read_states` by model.
        shown_ids: ids named for one reason; more are counted.
    """
    width = max([5, *map(len, states)])
    lines = [f"{'model':<{width}}  expected  done  failed  missing"]
    reasons = []
    for model, found in states.items():
        count = {kind: sum(state.kind == kind for state in found) for kind in ("done", "failed")}
        missing = len(found) - sum(count.values())
        lines.append(
            f"{model:<{width}}  {len(found):8}  {count['done']:4}  {count['failed']:6}  {missing:7}"
        )
        reasons += _reasons(model, found, shown_ids)
    return "\n".join(lines + reasons)


def _reasons(model: str, states: list[State], shown_ids: int) -> list[str]:
    groups: dict[tuple[str, str], list[str]] = {}
    for state in states:
        if state.kind != "done":
            groups.setdefault((state.kind, state.why), []).append(state.sample_id)
    lines = []
    for (kind, why), ids in groups.items():
        more = f" and {len(ids) - shown_ids} more" if len(ids) > shown_ids else ""
        label = why if kind in ("missing", "ready") else f"{kind}: {why}"
        lines.append(f"{model}: {label} ({len(ids)}): {', '.join(ids[:shown_ids])}{more}")
    return lines
