"""Run ROMA over a manifest by hand: one folder of results per sample, finished ones are kept.

The workflow does the same with shards, retries and audit: ``snakemake results_roma``.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

import yaml

from hfd.data.manifest import read_manifest
from hfd.errors import HfdError, run_cli
from hfd.files import canonical_json, replace_folder, sha256_bytes, sha256_file
from hfd.models.registry import create_model
from hfd.stream.session import Run, run_sample


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model-path", required=True, help="snapshot folder or hub id")
    parser.add_argument("--manifest", required=True, type=Path)
    parser.add_argument("--output-root", required=True, type=Path)
    parser.add_argument("--root", type=Path, default=Path(), help="what manifest paths start from")
    parser.add_argument("--two-stage", action="store_true", help="listen, then speak (always so)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", metavar="ID", help="run these samples only")
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="KEY=VALUE", help="settings (docs/roma.md), as YAML"
    )
    options = parser.parse_args(argv)
    settings = {"model_path": options.model_path, **dict(map(parse_setting, options.set))}
    samples = read_manifest(options.manifest, options.root)
    if options.only is not None:
        samples = [sample for sample in samples if sample.sample_id in options.only]
    model = create_model("roma", settings)
    run = Run("roma", "roma", settings, options.seed, model.load())
    options.output_root.mkdir(parents=True, exist_ok=True)
    failed = 0
    try:
        for sample in samples:
            target = options.output_root / sample.sample_id
            if (target / "result.json").is_file():
                print(f"{sample.sample_id}: kept")
                continue
            made_of = [sha256_file(sample.video), settings, options.seed, run.identity.weights]
            fingerprint = sha256_bytes(canonical_json(made_of).encode())
            part = Path(tempfile.mkdtemp(dir=options.output_root, prefix=".part-"))
            try:
                result = run_sample(model, run, sample, part, fingerprint=fingerprint)
                replace_folder(part, target)
                print(f"{sample.sample_id}: {result['status']}: {result['text']!r}")
            except HfdError as error:
                failed += 1
                print(f"{sample.sample_id}: failed: {error}")
            finally:
                shutil.rmtree(part, ignore_errors=True)
    finally:
        model.unload()
    return 1 if failed else 0


def parse_setting(text: str) -> tuple[str, Any]:
    """``threshold=0.6`` as a key and a YAML value."""
    key, found, value = text.partition("=")
    if not found:
        raise HfdError(f"is {text!r}", field="--set", remedy="Write KEY=VALUE")
    return key, yaml.safe_load(value)


if __name__ == "__main__":
    run_cli(main)
