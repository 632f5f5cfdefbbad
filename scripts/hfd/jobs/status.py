"""What exists, what is missing, and why: one model against the manifest."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from hfd.data.manifest import Sample
from hfd.errors import HfdError
from hfd.jobs.hashes import HashCache
from hfd.jobs.spec import ModelSpec, Recipe
from hfd.jobs.store import Store, glance, verify
from hfd.models.locate import module_source
from hfd.secrets import without_secrets
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
        busy: its machine was busy with other work meanwhile, so its times are not the model's.
        shared: other samples ran beside it in its worker, so its times are not the model's.
    """

    sample_id: str
    kind: Kind
    why: str
    damaged: bool = False
    busy: bool = False
    shared: bool = False

    @property
    def needs_work(self) -> bool:
        """Whether the model has to run for it."""
        return self.kind in ("stale", "failed", "missing")


class Expectation:
    """What a valid result of one model is made of now: the one place that judges validity."""

    def __init__(self, spec: ModelSpec, root: Path, hashes: HashCache) -> None:
        self.spec, self._root, self._hashes = spec, root, hashes

    @functools.cached_property
    def recipe(self) -> Recipe:
        """The model's share; weight files are hashed when it is first asked for."""
        weights = {name: self._hashes.sha256_tree(self._root / name) for name in self.spec.weights}
        return Recipe(
            self.spec.module, self.spec.settings, self.spec.seed, weights, self.spec.sessions
        )

    @functools.cached_property
    def _code(self) -> str:
        return _one_code(code_version(module_source(self.spec.module, self.spec.module_path)))

    def inputs(self, sample: Sample) -> tuple[str, str | None]:
        """Hashes of a sample's video and adapter.

        Raises:
            HfdError: one of them cannot be read.
        """
        adapter = self._hashes.sha256(sample.adapter) if sample.adapter else None
        return self._hashes.sha256(sample.video), adapter

    def fingerprint(self, sample: Sample) -> str:
        return self.recipe.fingerprint(*self.inputs(sample))

    def fits(self, sample: Sample, provenance: Mapping[str, Any]) -> bool:
        """Whether a result with this provenance was made of what is there now."""
        made = provenance["fingerprint"]
        if "code" in self.spec.rerun_on and _one_code(provenance["code"]) != self._code:
            return False
        if made == self.fingerprint(sample):
            return True
        earlier = f"{provenance['code']['commit']} {provenance['code']['dirty_diff_sha256']}"
        return made == self.recipe.fingerprint(*self.inputs(sample), code=earlier)

    def is_valid(self, folder: Path, sample: Sample) -> bool:
        """Whether a folder holds a whole result (every byte is read) that fits."""
        try:
            return self.fits(sample, verify(folder))
        except (HfdError, KeyError, TypeError):
            return False

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
        old, new = model["settings"], without_secrets(self.spec.settings)
        keys = sorted(key for key in old.keys() | new.keys() if old.get(key) != new.get(key))
        changed += [f"setting {key}" for key in keys]
        if provenance.get("recipe", {}).get("sessions", 1) != self.spec.sessions:
            changed.append("sessions")
        if "code" in self.spec.rerun_on and _one_code(provenance["code"]) != self._code:
            changed.append("code")
        return f"{', '.join(changed or ['seed or weights'])} changed"


def _one_code(code: Mapping[str, Any]) -> str:
    """A code version in one line, as far as it can change answers."""
    return " ".join(str(code.get(k)) for k in ("commit", "dirty_diff_sha256", "module_sha256"))


def read_states(store: Store, samples: Sequence[Sample], expected: Expectation) -> list[State]:
    """The state of every sample, in the manifest's order; reads, never writes."""
    if not store.folder.exists() and not (store.root / "results" / store.model).exists():
        return [State(sample.sample_id, "missing", "never run") for sample in samples]
    return [_state(store, sample, expected) for sample in samples]


def _state(store: Store, sample: Sample, expected: Expectation) -> State:
    name = sample.sample_id
    found = glance(store.entry(name))
    entry, result = found[1], glance(store.published(name), found)[1]
    stored, shown = entry.provenance, result.provenance
    made = [provenance for provenance in (stored, shown) if provenance]
    try:
        stored_fits = stored is not None and expected.fits(sample, stored)
        shown_fits = shown is not None and (
            stored_fits if shown is stored else expected.fits(sample, shown)
        )
    except HfdError as error:
        return State(name, "missing", str(error))
    if stored_fits or shown_fits:
        whole = not stored_fits or result.sizes == entry.sizes
        if shown_fits and whole:
            return State(
                name, "done", "published", busy=_was_busy(made[-1]), shared="shared" in made[-1]
            )
        return State(name, "ready", "finished, to be published", damaged=result.sizes[-1] != -1)
    if failure := store.error(name):
        return State(name, "failed", failure["error"])
    if made:
        return State(name, "stale", expected.difference(sample, made[0]))
    return State(name, "missing", "never run")


def _was_busy(provenance: Mapping[str, Any]) -> bool:
    return bool(provenance.get("machine", {}).get("busy"))


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
        reasons += _not_its_own(model, found, shown_ids)
    return "\n".join(lines + reasons)


def _reasons(model: str, states: list[State], shown_ids: int) -> list[str]:
    groups: dict[tuple[str, str], list[str]] = {}
    for state in states:
        if state.kind != "done":
            groups.setdefault((state.kind, state.why), []).append(state.sample_id)
    lines = []
    for (kind, why), ids in groups.items():
        label = why if kind in ("missing", "ready") else f"{kind}: {why}"
        lines.append(f"{model}: {label} {_listed(ids, shown_ids)}")
    return lines


def _not_its_own(model: str, states: list[State], shown_ids: int) -> list[str]:
    """Results whose times say little of the model."""
    busy = [state.sample_id for state in states if state.busy]
    shared = [state.sample_id for state in states if state.shared]
    wait = "done while the machine was busy with other work, so their times may not be the model's"
    beside = "done several at a time in one worker, so their times are shared"
    found = {wait: busy, beside: shared}
    return [f"{model}: {text} {_listed(ids, shown_ids)}" for text, ids in found.items() if ids]


def _listed(ids: list[str], shown_ids: int) -> str:
    more = f" and {len(ids) - shown_ids} more" if len(ids) > shown_ids else ""
    return f"({len(ids)}): {', '.join(ids[:shown_ids])}{more}"
