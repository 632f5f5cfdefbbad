"""Check delivered results from outside, without the workflow: every folder by its own trace.

Give the delivery's folder (``results_roma``, ``results/roma`` or one sample's folder). With
``--manifest`` the samples' own files are compared too. Exit code 0: nothing is wrong; 1: something
is, each named with file and line; 3: it could not be judged (no result, or a sample on which this
program itself fails).
"""

from __future__ import annotations

import argparse
import functools
import io
import json
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

# Its processes share the cores already; numpy reads this when it is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
from hfd.data.manifest import Sample, read_manifest
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
from hfd.judge.transcript import Transcripts, read_transcripts
from hfd.judge.verdict import FAIL, Verdict
from hfd.judge.witness import held_against, read_log

WRONG, NOT_JUDGED = 1, 3


def main(argv: list[str] | None = None) -> int:
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    args = _parser().parse_args(argv)
    try:
        return _main(args)
    except HfdError as error:
        print(f"error: {error}", file=sys.stderr)
        return NOT_JUDGED


def _main(args: argparse.Namespace) -> int:
    if not args.folder.is_dir():
        raise HfdError("there is no such folder", file=args.folder)
    samples = read_manifest(args.manifest, args.root, check_files=False) if args.manifest else []
    problems = list(wrong_files(args.folder))
    files = list(problems)
    work = list(_folders(args.folder, samples))
    if not work:
        raise HfdError(f"holds no result ({', '.join(FILES)})", file=args.folder)
    policy = Policy(args.voice_origin, named_model(args.folder))
    job = Job(policy, read_transcripts(args.transcripts))
    records = list(each(functools.partial(_verify, job), work, args.jobs))
    known = {sample.sample_id for sample in samples} | set(BESIDE)
    extra = foreign_folders(args.folder, known) if samples else []
    doubles = duplicates(records).get("")
    probes = read_probes(None, "")
    verdicts = judge_model(SetCase(records, extra, doubles, probes, has_manifest=bool(samples)))
    problems += [f"{c}: {v.reason}" for c, v in verdicts.items() if v.status == FAIL]
    if args.witness:
        witnessed, told = _witnessed(args, records)
        problems += witnessed
        files += witnessed
        if not args.json:
            print("\n".join(told))
    if args.json:
        print(json.dumps({code: v.as_dict() for code, v in verdicts.items()}, ensure_ascii=False))
    else:
        _tell(records, verdicts, files, bool(problems))
    if problems:
        return WRONG
    return NOT_JUDGED if any(record.facts.get("not_judged") for record in records) else 0


def _witnessed(args: argparse.Namespace, records: list[Record]) -> tuple[list[str], list[str]]:
    """What the witness's log contradicts, and what it tells besides; one line each."""
    log = read_log(args.witness, args.witness_key, args.witness_ca)
    one = any(os.path.lexists(args.folder / name) for name in FILES)
    wrong, attempts = held_against(log, records, args.folder.absolute().name if one else None)
    problems = [f"{args.witness.name}: {line}" for line in [*log.problems, *wrong]]
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
class Job:
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


def _verify(job: Job, work: tuple[Path, Sample | None]) -> Record:
    """A sample's record, without what only the report draws."""
    folder, sample = work
    task = sample.task if sample else ""
    if not folder.is_dir():
        return absent("", folder.name, task, None)
    reference = reference_or_why(sample, None)
    record = judged_or_not(folder, "", task, reference, job.policy, transcripts=job.transcripts)
    return replace(record, drawing={})


def _tell(
    records: list[Record], verdicts: dict[str, Verdict], files: list[str], wrong: bool
) -> None:
    for rule in RULES:
        verdict = verdicts[rule.code]
        print(f"{rule.code:4} {verdict.status:13} {rule.title}: {verdict.reason}")
    for record in records:
        for code, verdict in record.verdicts.items():
            if verdict.status == FAIL and verdicts[code].status == FAIL:
                found = verdict.evidence.get("findings") or [{"message": verdict.reason}]
                for item in found:
                    print(f"error: {code} {record.sample_id}/{_place(item)}")
        if record.facts.get("not_judged"):
            print(f"not judged: {record.sample_id}: {record.reason}")
    for line in files:
        print(f"error: {line}")
    print(f"{len(records)} samples, {'NOT verified' if wrong else 'nothing is wrong'}")


def _place(item: dict) -> str:
    file = item.get("file", "")
    place = f"{file}:{item['line']}" if item.get("line") else file
    return f"{place}: {item['message']}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="a model's results, or one sample's folder")
    parser.add_argument("--manifest", type=Path, help="compare with the samples of this manifest")
    parser.add_argument("--root", type=Path, default=Path(), help="folder of the manifest's paths")
    parser.add_argument("--voice-origin", help="what the model's contract demands")
    parser.add_argument("--transcripts", type=Path, help="of scripts/transcripts.py (rule A15)")
    parser.add_argument("--witness", type=Path, help="log.jsonl of --config witness=FOLDER")
    parser.add_argument("--witness-key", type=Path, help="key.pub.pem, as given out before the run")
    parser.add_argument("--witness-ca", type=Path, help="certificates of its time-stamp service")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    return parser


if __name__ == "__main__":
    sys.exit(main())
