"""Cost of the audit: 1024 samples x 5 models, as copies of the results that a demo has made.

    python benchmarks/audit_cost.py --root .demo --model cascade

Copies carry new ids but the old traces, so rule A16 fails for them; the work is the same.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
from hfd.data.manifest import read_manifest
from hfd.errors import HfdError, run_cli

_AUDIT = Path(__file__).resolve().parents[1] / "scripts" / "audit.py"


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    with tempfile.TemporaryDirectory(prefix="hfd-bench-") as folder:
        root = Path(folder)
        build(args, root)
        began = time.monotonic()
        subprocess.run(
            [sys.executable, _AUDIT, "--manifest", root / "manifest.jsonl", "--root", root,
             "--results", root / "results", "--models-file", root / "models.yaml",
             "--out", root / "audit", "--jobs", str(args.jobs)],
            check=True, stdout=subprocess.DEVNULL,
        )  # fmt: skip
        wall = time.monotonic() - began
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        index = sum(
            p.stat().st_size for p in [*root.glob("audit/*.js"), *root.glob("audit/assets/*")]
        )
        print(
            f"{args.samples} samples x {args.models} models: {wall:.0f} s on {args.jobs} "
            f"processes, {used.ru_utime + used.ru_stime:.0f} CPU s, largest process "
            f"{used.ru_maxrss / 1024:.0f} MiB, first page {index / 1e6:.1f} MB"
        )
    return 0


def build(args: argparse.Namespace, root: Path) -> None:
    """Link `samples` x `models` copies of one model's results, and write their manifest."""
    manifest = args.root / "data/manifest.jsonl"
    results = args.root / "results" / args.model
    done = [
        sample
        for sample in read_manifest(manifest, args.root)
        if (results / sample.sample_id / "result.json").is_file()
    ]
    if not done:
        raise HfdError("there are no results to copy", file=results, remedy="Run make demo first")
    rows = []
    for number in range(args.samples):
        sample, name = done[number % len(done)], f"copy{number:04d}"
        row = dict(sample.row) | {"sample_id": name, "video": f"videos/{name}.mp4"}
        row.pop("id", None)
        _link(sample.video, root / row["video"])
        if sample.adapter is not None:
            row["adapter"] = f"adapters/{name}.json"
            _link(sample.adapter, root / row["adapter"])
        rows.append(json.dumps(row, ensure_ascii=False))
        for model in range(args.models):
            for file in (results / sample.sample_id).glob("*.*"):
                _link(file, root / "results" / f"m{model}" / name / file.name)
    (root / "manifest.jsonl").write_text("\n".join(rows) + "\n", encoding="utf-8")
    names = "".join(f"  m{n}: {{module: x}}\n" for n in range(args.models))
    (root / "models.yaml").write_text(f"models:\n{names}", encoding="utf-8")


def _link(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--root", type=Path, default=Path(".demo"), help="folder of a finished demo"
    )
    parser.add_argument("--model", default="cascade", help="whose results are copied")
    parser.add_argument("--samples", type=int, default=1024)
    parser.add_argument("--models", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=2)
    return parser


if __name__ == "__main__":
    run_cli(main)
