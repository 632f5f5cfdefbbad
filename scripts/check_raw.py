"""Say of every raw row, before compiling, whether it is accepted, changed or refused, and why.

Every frame is decoded, so this takes about as long as compiling. Only the table is written.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from hfd.data.raw_check import RawVerdict, Task, files_to_check, rows_to_check
from hfd.errors import HfdError, run_cli
from hfd.files import atomic_write


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("--raw", type=Path, help="raw manifest (JSON Lines): a verdict per row")
    what.add_argument("--folder", type=Path, help="folder of sources: a verdict per file")
    parser.add_argument(
        "--root", type=Path, default=Path(), help="folder the rows' paths start from"
    )
    parser.add_argument("--fields", type=json.loads, default={}, help="raw.fields, as JSON")
    parser.add_argument("--full-first-question", choices=["refuse", "warn"], default="refuse")
    parser.add_argument("--table", type=Path, required=True, help="CSV to write")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    args = parser.parse_args(argv)

    if args.folder:
        tasks = files_to_check(args.folder)
    else:
        tasks = rows_to_check(args.raw, args.root, args.fields)
    with ProcessPoolExecutor(args.jobs) as pool:
        verdicts = list(
            pool.map(partial(Task.run, full_first_question=args.full_first_question), tasks)
        )
    _write(args.table, verdicts)
    counts = Counter(verdict.verdict for verdict in verdicts)
    for verdict in verdicts:
        if verdict.verdict != "ok":
            print(f"{verdict.verdict:7} {verdict.name or verdict.place}: {verdict.says}")
    summary = ", ".join(f"{counts[word]} {word}" for word in ("ok", "changed", "refused"))
    print(f"{len(verdicts)} checked: {summary}. Table: {args.table}")
    if counts["refused"]:
        raise HfdError(
            f"{counts['refused']} of {len(verdicts)} would be refused",
            file=args.raw or args.folder,
            remedy="docs/sources.md says what is accepted",
        )


def _write(path: Path, verdicts: list[RawVerdict]) -> None:
    table = io.StringIO()
    writer = csv.writer(table)
    writer.writerow(["name", "place", "verdict", "says"])
    writer.writerows([v.name, v.place, v.verdict, v.says] for v in verdicts)
    atomic_write(path, "\ufeff" + table.getvalue())


if __name__ == "__main__":
    run_cli(main)
