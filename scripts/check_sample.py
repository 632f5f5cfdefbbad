"""Check one compiled sample and write the verdict; bad media is a verdict, not a failure."""

from __future__ import annotations

import argparse
from pathlib import Path

from hfd.data.check import Subject, check_sample
from hfd.data.deny_list import read_deny_list
from hfd.errors import run_cli
from hfd.files import write_json


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample-id", required=True, help="(--sample-id=-x for -x)")
    parser.add_argument("--task", required=True, help="task of the sample, e.g. hesitation")
    parser.add_argument("--video", type=Path, required=True)
    parser.add_argument("--adapter", type=Path, help="left out: the sample has none")
    parser.add_argument("--duration", type=float, required=True, help="duration_seconds")
    parser.add_argument("--deny-list", type=Path, help="SHA-256 of old videos, one a line")
    parser.add_argument("--output", type=Path, required=True, help="verdict to write (JSON)")
    args = parser.parse_args(argv)

    denied = read_deny_list(args.deny_list) if args.deny_list else frozenset()
    subject = Subject(args.sample_id, args.task, args.video, args.adapter, args.duration)
    verdict = check_sample(subject, denied)
    write_json(args.output, verdict)
    for finding in verdict["findings"]:
        if finding["status"] != "ok":
            print(f"{finding['status']}: {finding['rule']}: {finding['message']}")
    print(f"{args.sample_id}: {verdict['status']}")


if __name__ == "__main__":
    run_cli(main)
