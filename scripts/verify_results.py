"""Check delivered results from outside, without the workflow: every folder by its own trace.

Give the delivery's folder (``results_roma``, ``results/roma`` or one sample's folder). With
``--manifest`` the samples' own files are compared too. Exit code 0: nothing is wrong; 1: something
is, each named with file and line; 3: it could not be judged (no result, or a sample on which this
program itself fails).
"""

from __future__ import annotations

import argparse
import io
import json
import os
import sys
from pathlib import Path

# Its processes share the cores already; numpy reads this when it is loaded.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
from hfd.data.manifest import read_manifest
from hfd.errors import HfdError
from hfd.judge.transcript import read_transcripts
from hfd.judge.verification import WitnessFiles, verify

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
    found = verify(
        args.folder,
        read_manifest(args.manifest, args.root, check_files=False) if args.manifest else [],
        args.voice_origin,
        read_transcripts(args.transcripts),
        WitnessFiles(args.witness, args.witness_key, args.witness_ca) if args.witness else None,
        args.jobs,
    )
    if args.json:
        verdicts = {code: verdict.as_dict() for code, verdict in found.verdicts.items()}
        print(json.dumps(verdicts, ensure_ascii=False))
    else:
        print("\n".join([*found.told, *found.lines()]))
    return WRONG if found.is_wrong else 0 if found.is_judged else NOT_JUDGED


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
