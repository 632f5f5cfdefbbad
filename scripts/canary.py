"""Run a model over canary samples, and say which words and colours it still knew when asked.

Runs in the model's own environment, by the session that makes results; result folders stay under
the scratch folder and never mix with results.
"""

from __future__ import annotations

import argparse
import shutil
from pathlib import Path

from hfd.data.manifest import read_manifest
from hfd.errors import run_cli
from hfd.files import read_json, sha256_file, write_json
from hfd.jobs.spec import ModelSpec
from hfd.jobs.worker import make_model
from hfd.judge.canary import answer_to
from hfd.stream.run import Run
from hfd.stream.session import run_sample


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    spec = ModelSpec.from_environment(args.model)
    samples = read_manifest(args.media / "manifest.jsonl", args.media)
    model = make_model(spec)
    run = Run(spec.name, spec.module, spec.settings, spec.seed, model.load())
    answers, made = {}, {}
    try:
        for sample in samples:
            folder = args.scratch / sample.sample_id
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            run_sample(model, run, sample, folder, fingerprint="canary")
            provenance = read_json(folder / "provenance.json")
            made = provenance["model"]
            answers[sample.sample_id] = answer_to(folder, sample.row["canary"]) | {
                "video_sha256": sha256_file(sample.video),
                "tail": provenance["trace"]["tail"],
            }
    finally:
        model.unload()
    identity = {key: made.get(key) for key in ("module", "weights", "settings")}
    write_json(
        args.out,
        {
            "kind": "canary",
            "nonce": args.nonce,
            "model": {"model": spec.name, **identity},
            "samples": answers,
        },
    )
    for sample_id, one in answers.items():
        print(f"{sample_id}: {one['word']}: {'yes' if one['right'] else 'no'}: {one['said']!r}")
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="its name in $HFD_CONFIG")
    parser.add_argument("--media", type=Path, required=True, help="folder of canary_media.py")
    parser.add_argument("--nonce", required=True, help="with which the media were made")
    parser.add_argument("--scratch", type=Path, required=True, help="folder for result folders")
    parser.add_argument("--out", type=Path, required=True, help="what was found, as JSON")
    return parser


if __name__ == "__main__":
    run_cli(main)
