"""Audit all results of a manifest: every sample of every model, then the sets."""

from __future__ import annotations

import functools
import hashlib
import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from hfd.data.manifest import Sample
from hfd.errors import LOST_AS, HfdError
from hfd.files import read_json
from hfd.judge.folder import foreign_folders
from hfd.judge.pool import each
from hfd.judge.probe import read_probes
from hfd.judge.reference import Reference, reference_or_why
from hfd.judge.report.pages import write_sample_page
from hfd.judge.rules import judge_model
from hfd.judge.rules.a14_completeness import duplicates
from hfd.judge.rules.rule import Policy, SetCase
from hfd.judge.sample import Record, absent, judged_or_not, not_judged
from hfd.judge.strata import sample_facts
from hfd.judge.transcript import Transcripts
from hfd.judge.verdict import Verdict


@dataclass(frozen=True)
class ModelSource:
    """Where a model's results lie, and what it must deliver.

    Attributes:
        name: as in config/models.yaml.
        results: ``results/<name>``, one folder per sample.
        errors: ``work/<name>/errors``, recorded errors of failed samples, or None.
        policy: the contract to judge against.
        store: ``work/<name>/store``, the worker's own copies, or None.
    """

    name: str
    results: Path
    errors: Path | None
    policy: Policy
    store: Path | None = None


@dataclass(frozen=True)
class Job:
    """What all samples of one audit share.

    Attributes:
        models: in the order of the report.
        checks: ``work/checks``, or None.
        transcripts: what a recogniser heard, by wav hash.
        out: the report's folder; sample pages and players are written there on the way.
        cache: where compact audio copies are kept between audits, or None.
        players: whether to make compact audio copies for the players.
    """

    models: tuple[ModelSource, ...]
    checks: Path | None
    transcripts: Transcripts
    out: Path
    cache: Path | None = None
    players: bool = True


@dataclass
class Audit:
    """The outcome.

    Attributes:
        records: one for each model and sample, models in order, samples in manifest order.
        verdicts: model to rule code to answer.
    """

    models: list[str]
    records: dict[str, list[Record]]
    verdicts: dict[str, dict[str, Verdict]]
    samples: list[Sample] = field(default_factory=list)


def run_audit(
    samples: Sequence[Sample], job: Job, jobs: int, probes: Path | None, nonce: str = ""
) -> Audit:
    """Audit every sample in `jobs` processes; memory holds no sound beyond the samples in work."""
    records: dict[str, list[Record]] = {model.name: [] for model in job.models}
    known: dict[bytes, Any] = {}
    for found in each(functools.partial(_one, job), samples, jobs):
        for record in found:
            _share(record, known)
            records[record.model].append(record)
    doubles = duplicates([record for group in records.values() for record in group])
    names = {sample.sample_id for sample in samples}
    verdicts = {
        model.name: judge_model(
            SetCase(
                records[model.name],
                foreign_folders(model.results, names),
                doubles.get(model.name),
                read_probes(probes, model.name, tails_of(records[model.name]), nonce),
            )
        )
        for model in job.models
    }
    return Audit([model.name for model in job.models], records, verdicts, list(samples))


def _share(record: Record, known: dict[bytes, Any]) -> None:
    """Keep what many records say alike once: they came from other processes, each with its own."""
    for part, names in ((record.facts, _ALIKE), (record.verdicts, tuple(record.verdicts))):
        for name in names:
            if name in part:
                digest = hashlib.sha256(pickle.dumps(part[name])).digest()
                part[name] = known.setdefault(digest, part[name])


_ALIKE = ("run", "identity", "code")


def tails_of(records: Sequence[Record]) -> dict[str, str]:
    """The trace tail of every result that can be judged, by sample."""
    return {r.sample_id: r.facts["tail"] for r in records if "tail" in r.facts}


def _one(job: Job, sample: Sample) -> list[Record]:
    """All models' results of one sample; the sample's files are read once."""
    found = reference_or_why(sample, job.checks)
    reference = None if isinstance(found, str) else found
    facts = sample_facts(sample, reference)
    records = [_of_model(job, sample, model, found) for model in job.models]
    for record in records:
        record.facts |= facts
    sources = {model.name: model.results for model in job.models}
    try:
        write_sample_page(
            job.out, sample, reference, records, sources, cache=job.cache, players=job.players
        )
    except HfdError:
        raise  # the disk is full: no page can be written
    except Exception as error:
        records = [
            not_judged(model.results / sample.sample_id, model.name, sample.task, error)
            for model in job.models
        ]
        for record in records:
            record.facts |= facts
    return [replace(record, drawing={}) for record in records]


def _of_model(job: Job, sample: Sample, model: ModelSource, reference: Reference | str) -> Record:
    folder = model.results / sample.sample_id
    if not folder.is_dir():
        error, lost_as = recorded_error(model.errors, sample)
        return absent(model.name, sample.sample_id, sample.task, error, lost_as)
    record = judged_or_not(
        folder,
        model.name,
        sample.task,
        reference,
        model.policy,
        store=model.store / sample.sample_id if model.store else None,
        transcripts=job.transcripts,
    )
    record.facts["error"], _ = recorded_error(model.errors, sample)
    return record


def recorded_error(errors: Path | None, sample: Sample) -> tuple[str | None, str]:
    """The recorded error of a lost sample in one line, and how it counts (`LOST_AS`)."""
    path = errors / f"{sample.sample_id}.json" if errors else None
    if path is None or not path.is_file():
        return None, "failed"
    try:
        record = read_json(path)
    except HfdError as error:
        return str(error), "failed"
    if not isinstance(record, dict):
        return str(record)[:500], "failed"
    problem = record.get("problem") or record.get("error") or record
    lost_as = record.get("lost_as")
    return str(problem)[:500], lost_as if lost_as in LOST_AS else "failed"
