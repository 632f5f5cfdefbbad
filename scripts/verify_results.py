"""Check delivered results from outside, without the workflow: every folder by its own trace.

Give the delivery's folder (``results_roma``, ``results/roma`` or one sample's folder). With
``--manifest`` the samples' own files are compared too. Exit code 0: nothing is wrong; 1: something
is, each named with file and line.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from hfd.data.manifest import Sample, read_manifest
from hfd.errors import HfdError, run_cli
from hfd.judge.findings import FILES
from hfd.judge.folder import foreign_folders
from hfd.judge.probe import read_probes
from hfd.judge.reference import read_reference
from hfd.judge.rules import RULES, judge_model
from hfd.judge.rules.a14_completeness import duplicates
from hfd.judge.rules.rule import Policy, SetCase
from hfd.judge.sample import Record, absent, audit_sample
from hfd.judge.verdict import FAIL, Verdict

SUMS = "SHA256SUMS"


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    if not args.folder.is_dir():
        raise HfdError("there is no such folder", file=args.folder)
    samples = read_manifest(args.manifest, args.root, check_files=False) if args.manifest else []
    problems = [f"{SUMS}: {line}" for line in wrong_sums(args.folder)]
    records, details = [], []
    for folder, sample in _folders(args.folder, samples):
        record, lines = _verify(folder, sample, Policy(args.voice_origin))
        records.append(record)
        details += lines
    if not records:
        raise HfdError(f"holds no result ({', '.join(FILES)})", file=args.folder)
    known = {sample.sample_id for sample in samples}
    extra = foreign_folders(args.folder, known) if samples else []
    doubles = duplicates(records).get("")
    verdicts = judge_model(SetCase(records, extra, doubles, read_probes(None, "")))
    for code, verdict in verdicts.items():
        if verdict.status == FAIL:
            problems.append(f"{code}: {verdict.reason}")
    if args.json:
        print(json.dumps({code: v.as_dict() for code, v in verdicts.items()}, ensure_ascii=False))
    else:
        _tell(records, verdicts, problems, details)
    return 1 if problems else 0


def wrong_sums(folder: Path) -> Iterator[str]:
    """Lines of SHA256SUMS that do not hold; none where there is no such file."""
    path = folder / SUMS
    if not path.is_file():
        return
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        digest, _, name = line.partition("  ")
        target = folder / name
        if not target.is_file():
            yield f"line {number}: {name} is missing"
        elif hashlib.sha256(target.read_bytes()).hexdigest() != digest:
            yield f"line {number}: {name} was changed after delivery"


def _folders(root: Path, samples: list[Sample]) -> Iterator[tuple[Path, Sample | None]]:
    """Every sample's folder: by the manifest, or else each folder that holds a result file."""
    if any((root / name).is_file() for name in FILES):
        known = {sample.sample_id: sample for sample in samples}
        yield root, known.get(root.name)
    elif samples:
        yield from ((root / sample.sample_id, sample) for sample in samples)
    else:
        for folder in sorted(root.iterdir()):
            if folder.is_dir() and any((folder / name).exists() for name in FILES):
                yield folder, None


def _verify(folder: Path, sample: Sample | None, policy: Policy) -> tuple[Record, list[str]]:
    """A sample's record, and one line for every finding with its file and line."""
    task = sample.task if sample else ""
    if not folder.is_dir():
        return absent("", folder.name, task, None), []
    reference = read_reference(sample, None) if sample and sample.video.is_file() else None
    record = audit_sample(folder, "", task, reference, policy)
    lines = []
    for code, verdict in record.verdicts.items():
        if verdict.status == FAIL:
            found = verdict.evidence.get("findings") or [{"file": "", "message": verdict.reason}]
            lines += [f"{code} {folder.name}/{_place(item)}: {item['message']}" for item in found]
    return record, lines


def _place(item: dict) -> str:
    return f"{item['file']}:{item['line']}" if item.get("line") else item["file"]


def _tell(
    records: list[Record], verdicts: dict[str, Verdict], problems: list[str], details: list[str]
) -> None:
    for rule in RULES:
        verdict = verdicts[rule.code]
        print(f"{rule.code:4} {verdict.status:13} {rule.title}: {verdict.reason}")
    for line in details:
        print(f"error: {line}")
    for line in problems:
        if line.startswith(SUMS):
            print(f"error: {line}")
    print(f"{len(records)} samples, {'nothing is wrong' if not problems else 'NOT verified'}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="a model's results, or one sample's folder")
    parser.add_argument("--manifest", type=Path, help="compare with the samples of this manifest")
    parser.add_argument("--root", type=Path, default=Path(), help="folder of the manifest's paths")
    parser.add_argument("--voice-origin", help="what the model's contract demands")
    parser.add_argument("--json", action="store_true", help="print the verdicts as JSON")
    return parser


if __name__ == "__main__":
    run_cli(main)
