"""Run Aero over a manifest by hand: one folder of results per sample, finished ones are kept.

Both servers are already up, or started by the settings (docs/aero.md). The workflow does the same
with shards, retries and audit: ``snakemake results_aero``.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
from pathlib import Path
from typing import Any

import yaml

from hfd.data.manifest import Sample, read_manifest
from hfd.errors import HfdError, run_cli
from hfd.files import canonical_json, replace_folder, sha256_bytes, sha256_file
from hfd.models.aero import DEFAULTS, TEAM_WAV
from hfd.models.registry import create_model
from hfd.stream.session import Run, run_sample


def main(argv: list[str] | None = None) -> int:
    """Entry point; 1 if a sample failed."""
    options = _parse(argv)
    settings = {"url": options.url, "tts_url": options.tts_url, "record": options.record}
    settings |= dict(map(_setting, options.set))
    samples = read_manifest(options.manifest, options.root)
    if options.only is not None:
        samples = [sample for sample in samples if sample.sample_id in options.only]
    model = create_model("aero", settings)
    options.output_root.mkdir(parents=True, exist_ok=True)
    failed = 0
    try:
        run = Run("aero", "aero", settings, options.seed, model.load(), options.max_lag)
        for sample in samples:
            if (options.output_root / sample.sample_id / "result.json").is_file():
                print(f"{sample.sample_id}: kept")
                continue
            try:
                result = _run_one(model, run, sample, options.output_root)
                print(f"{sample.sample_id}: {result['status']}: {result['text']!r}")
            except HfdError as error:
                failed += 1
                print(f"{sample.sample_id}: failed: {error}")
    finally:
        model.unload()
    return 1 if failed else 0


def _run_one(model: Any, run: Run, sample: Sample, root: Path) -> dict[str, Any]:
    """Run one sample into its folder, which appears whole or not at all."""
    made_of = [sha256_file(sample.video), dict(run.settings), run.seed, run.identity.weights]
    part = Path(tempfile.mkdtemp(dir=root, prefix=".part-"))
    try:
        fingerprint = sha256_bytes(canonical_json(made_of).encode())
        result = run_sample(model, run, sample, part, fingerprint=fingerprint)
        shutil.copyfile(part / "assistant_audio.wav", part / TEAM_WAV)
        replace_folder(part, root / sample.sample_id)
        return result
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--manifest", required=True, type=Path)
    parser.add_argument("--output-root", required=True, type=Path)
    parser.add_argument("--root", type=Path, default=Path(), help="what manifest paths start from")
    parser.add_argument("--url", default=DEFAULTS["url"], help="Aero server (%(default)s)")
    parser.add_argument("--tts-url", default=DEFAULTS["tts_url"], help="TTS server (%(default)s)")
    parser.add_argument("--record", action="store_true", help="keep the raw frames of both sockets")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--max-lag", type=float, default=0.5, help="seconds; a later unit fails the sample"
    )
    parser.add_argument("--only", nargs="*", metavar="ID", help="run these samples only")
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="KEY=VALUE", help="settings (docs/aero.md), as YAML"
    )
    return parser.parse_args(argv)


def _setting(text: str) -> tuple[str, Any]:
    key, found, value = text.partition("=")
    if not found:
        raise HfdError(f"is {text!r}", field="--set", remedy="Write KEY=VALUE")
    return key, yaml.safe_load(value)


if __name__ == "__main__":
    run_cli(main)
