"""Validate, measure and report: all results of a manifest → ``results/audit/``."""

from __future__ import annotations

import argparse
import os
import shutil
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# Its processes share the cores already; numpy reads this when it is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import yaml

from hfd.data.deny_list import read_deny_list
from hfd.data.manifest import read_manifest
from hfd.errors import HfdError, run_cli
from hfd.files import sha256_file
from hfd.judge.canary_summary import summary_of
from hfd.judge.comparisons import PRIMARY
from hfd.judge.endpoints import RATE
from hfd.judge.labels import read_labels
from hfd.judge.report.index import write_index
from hfd.judge.report.pages import copy_assets
from hfd.judge.rerun_files import read_reruns
from hfd.judge.rules.rule import Policy
from hfd.judge.run import Audit, Job, ModelSource, run_audit, tails_of
from hfd.judge.tables import code_version, coverage, write_tables
from hfd.judge.transcript import read_transcripts


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    samples = read_manifest(args.manifest, args.root, check_files=False)
    models = _models(args)
    labels = read_labels(args.labels)  # a bad file is told before the hour's work
    args.out.mkdir(parents=True, exist_ok=True)
    for old in ("samples", "players"):
        shutil.rmtree(args.out / old, ignore_errors=True)
    job = Job(
        models=models,
        checks=args.checks,
        transcripts=read_transcripts(args.transcripts),
        out=args.out,
        cache=args.cache,
        players=not args.no_players,
    )
    audit = run_audit(samples, job, args.jobs, args.probes, args.nonce)
    reruns = _reruns(args, audit)
    summary = write_tables(audit, args.out, _about(args, audit), args.primary, reruns, labels)
    write_index(audit, args.out, summary)
    copy_assets(args.out)
    _tell(audit, args.out)
    return 0


def _reruns(args: argparse.Namespace, audit: Audit) -> dict[str, dict[str, Any]]:
    """What each model's reruns found, why some say nothing of these results, and its canaries."""
    found: dict[str, dict[str, Any]] = {}
    for model in audit.models if args.probes else ():
        records = audit.records[model]
        reruns = read_reruns(args.probes, model, audit.samples, tails_of(records), args.nonce)
        canary = args.probes / "canary" / f"{model}.json"
        if canary.is_file():
            reruns["canary"] = summary_of(canary, records)
        if reruns:
            found[model] = reruns
    return found


def _models(args: argparse.Namespace) -> tuple[ModelSource, ...]:
    """The models to audit, with what config/models.yaml says each must deliver."""
    known = yaml.safe_load(args.models_file.read_text(encoding="utf-8"))["models"]
    names = args.models or list(known)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise HfdError(
            f"there is no model {unknown[0]!r}",
            file=args.models_file,
            field="models",
            remedy=f"Use one of {', '.join(known)}",
        )
    deny = read_deny_list(args.deny) if args.deny else frozenset()
    return tuple(
        ModelSource(
            name=name,
            results=args.results / name,
            errors=args.work / name / "errors" if args.work else None,
            policy=Policy(known[name].get("voice_origin"), name, known[name].get("module"), deny),
            store=args.work / name / "store" if args.work else None,
        )
        for name in names
    )


def _about(args: argparse.Namespace, audit: Audit) -> dict[str, Any]:
    versions = Counter(
        filter(None, (code_version(r) for records in audit.records.values() for r in records))
    )
    return {
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "manifest_sha256": sha256_file(args.manifest),
        "samples": len(audit.samples),
        "code_versions": dict(versions),
    }


def _tell(audit: Audit, out: Path) -> None:
    for model in audit.models:
        count = coverage(audit.records[model])
        answers = Counter(verdict.status for verdict in audit.verdicts[model].values())
        counts = ", ".join(f"{count[key]} {key}" for key in count if key != "expected")
        print(f"{model}: {count['expected']} expected: {counts}")
        print(f"{model}: rules: " + ", ".join(f"{n} {name}" for name, n in answers.items()))
        for code, verdict in audit.verdicts[model].items():
            if verdict.status == "fail":
                print(f"{model}: {code} fails: {verdict.reason}")
    versions = {v for records in audit.records.values() for r in records if (v := code_version(r))}
    if len(versions) > 1:
        print(f"made by {len(versions)} code versions; samples.csv names each sample's")
    print(f"report: {(out / 'index.html').resolve().as_uri()}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    path: dict[str, Any] = {"type": Path, "metavar": "PATH"}
    parser.add_argument("--manifest", default=Path("data/manifest.jsonl"), **path)
    parser.add_argument("--root", default=Path(), help="folder of the manifest's paths", **path)
    parser.add_argument("--results", default=Path("results"), **path)
    parser.add_argument("--work", help="recorded errors lie in WORK/<model>/errors", **path)
    parser.add_argument("--checks", help="folder of the data checks", **path)
    parser.add_argument("--models-file", default=Path("config/models.yaml"), **path)
    parser.add_argument("--models", nargs="*", help="names; default: every configured model")
    parser.add_argument("--deny", help="SHA-256 of videos that must not be used", **path)
    parser.add_argument("--transcripts", help="file or folder of scripts/transcripts.py", **path)
    parser.add_argument("--probes", help="folder of probes, <kind>/<model>.json", **path)
    parser.add_argument("--labels", help="folder of label sheets' keys and answers", **path)
    parser.add_argument("--nonce", default="", help="what the probes' samples were drawn with")
    parser.add_argument("--cache", help="where player copies are kept between audits", **path)
    parser.add_argument("--out", default=Path("results/audit"), **path)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--primary", choices=list(RATE), default=PRIMARY, help="primary endpoint")
    parser.add_argument("--no-players", action="store_true", help="no audio copies")
    return parser


if __name__ == "__main__":
    run_cli(main)
