"""Delivered results checked from outside, without the workflow: every folder by its own trace."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hfd.data.manifest import Sample
from hfd.errors import HfdError
from hfd.judge.delivery import ABOUT, BESIDE, INCOMPLETE, PREFIX, wrong_files
from hfd.judge.findings import FILES
from hfd.judge.folder import foreign_folders
from hfd.judge.plain_files import NotPlain, read_plain
from hfd.judge.pool import each
from hfd.judge.probe import read_probes
from hfd.judge.reference import reference_or_why
from hfd.judge.rules import RULES, judge_model
from hfd.judge.rules.a14_completeness import duplicates
from hfd.judge.rules.rule import Policy, SetCase
from hfd.judge.sample import Record, absent, judged_or_not
from hfd.judge.transcript import NOTHING_HEARD, Transcripts
from hfd.judge.verdict import FAIL, Verdict
from hfd.judge.witness import held_against, read_log


@dataclass(frozen=True)
class WitnessFiles:
    """A witness's log, and what it is held to.

    Attributes:
        log: log.jsonl.
        key: the public key, as given out before the run.
        ca: certificates of its time-stamp service.
    """

    log: Path
    key: Path | None
    ca: Path | None


@dataclass(frozen=True)
class Verification:
    """What was found in a delivery.

    Attributes:
        records: one for each sample.
        verdicts: of the rules over the set, by code.
        wrong_files: files that do not belong to the delivery or differ, and what the witness's
            log contradicts; one line each.
        told: what the witness tells besides.
    """

    records: list[Record]
    verdicts: dict[str, Verdict]
    wrong_files: list[str]
    told: list[str]

    @property
    def is_wrong(self) -> bool:
        return bool(self.wrong_files) or any(v.status == FAIL for v in self.verdicts.values())

    @property
    def is_judged(self) -> bool:
        """Whether the program could judge every sample."""
        return not any(record.facts.get("not_judged") for record in self.records)

    def lines(self) -> Iterator[str]:
        """The verdicts, everything wrong with its file and line, and a last line that sums up."""
        for rule in RULES:
            verdict = self.verdicts[rule.code]
            yield f"{rule.code:4} {verdict.status:13} {rule.title}: {verdict.reason}"
        for record in self.records:
            for code, verdict in record.verdicts.items():
                if verdict.status == FAIL and self.verdicts[code].status == FAIL:
                    found = verdict.evidence.get("findings") or [{"message": verdict.reason}]
                    for item in found:
                        yield f"error: {code} {record.sample_id}/{_place(item)}"
            if record.facts.get("not_judged"):
                yield f"not judged: {record.sample_id}: {record.reason}"
        yield from (f"error: {line}" for line in self.wrong_files)
        end = "NOT verified" if self.is_wrong else "nothing is wrong"
        yield f"{len(self.records)} samples, {end}"


def verify(
    folder: Path,
    samples: list[Sample],
    voice_origin: str | None = None,
    transcripts: Transcripts = NOTHING_HEARD,
    witness: WitnessFiles | None = None,
    jobs: int = 1,
) -> Verification:
    """Judge a delivery.

    Args:
        folder: a model's results, or one sample's folder.
        samples: of the manifest, whose files are then compared too; empty without one.
        voice_origin: what the model's contract demands.
        transcripts: what a recogniser heard (rule A15).
        witness: whose log the delivery is held against.
        jobs: processes.

    Raises:
        HfdError: there is no such folder, or no result in it.
    """
    if not folder.is_dir():
        raise HfdError("there is no such folder", file=folder)
    wrong = list(wrong_files(folder))
    work = list(_folders(folder, samples))
    if not work:
        raise HfdError(f"holds no result ({', '.join(FILES)})", file=folder)
    job = _Job(Policy(voice_origin, named_model(folder)), transcripts)
    records = list(each(functools.partial(_verify, job), work, jobs))
    known = {sample.sample_id for sample in samples} | set(BESIDE)
    extra = foreign_folders(folder, known) if samples else []
    doubles = duplicates(records).get("")
    probes = read_probes(None, "")
    verdicts = judge_model(SetCase(records, extra, doubles, probes, has_manifest=bool(samples)))
    told: list[str] = []
    if witness:
        contradicted, told = _witnessed(folder, witness, records)
        wrong += contradicted
    return Verification(records, verdicts, wrong, told)


def _witnessed(
    folder: Path, witness: WitnessFiles, records: list[Record]
) -> tuple[list[str], list[str]]:
    """What the witness's log contradicts, and what it tells besides; one line each."""
    log = read_log(witness.log, witness.key, witness.ca)
    one = any(os.path.lexists(folder / name) for name in FILES)
    wrong, attempts = held_against(log, records, folder.absolute().name if one else None)
    problems = [f"{witness.log.name}: {line}" for line in [*log.problems, *wrong]]
    return problems, [f"witness: {line}" for line in [*log.told, *attempts]]


def named_model(folder: Path) -> str | None:
    """The model that a delivery says it is of: in ABOUT.json, or in its folder's name."""
    with suppress(NotPlain, ValueError, TypeError, KeyError, RecursionError):
        return str(json.loads(read_plain(folder / ABOUT))["model"])
    name = folder.absolute().name
    if name.startswith(PREFIX):
        return name.removeprefix(PREFIX).removesuffix(INCOMPLETE)
    return None


@dataclass(frozen=True)
class _Job:
    """What all samples share."""

    policy: Policy
    transcripts: Transcripts


def _folders(root: Path, samples: list[Sample]) -> Iterator[tuple[Path, Sample | None]]:
    """Every sample's folder: by the manifest, or else each folder that holds a result file."""
    if any(os.path.lexists(root / name) for name in FILES):
        known = {sample.sample_id: sample for sample in samples}
        yield root, known.get(root.name)
    elif samples:
        yield from ((root / sample.sample_id, sample) for sample in samples)
    else:
        for folder in sorted(root.iterdir()):
            if folder.is_dir() and any(os.path.lexists(folder / name) for name in FILES):
                yield folder, None


def _verify(job: _Job, work: tuple[Path, Sample | None]) -> Record:
    """A sample's record, without what only the report shows."""
    folder, sample = work
    task = sample.task if sample else ""
    if not folder.is_dir():
        return absent("", folder.name, task, None)
    reference = reference_or_why(sample, None)
    return judged_or_not(
        folder, "", task, reference, job.policy, transcripts=job.transcripts, measured=False
    )


def _place(item: dict) -> str:
    file = item.get("file", "")
    place = f"{file}:{item['line']}" if item.get("line") else file
    return f"{place}: {item['message']}"
