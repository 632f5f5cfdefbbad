"""One model over a manifest without Snakemake: one folder of results per sample.

For a first look and for the team's old command lines. No shards, no checks, no retries: the
workflow does that (``snakemake results_<model>``), with the same session and the same files.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from hfd.data.manifest import Sample, read_manifest
from hfd.duplex.model import DuplexModel, ModelBroken
from hfd.errors import HfdError
from hfd.files import replace_folder
from hfd.jobs.hashes import HashCache
from hfd.jobs.spec import ModelSpec
from hfd.jobs.status import Expectation
from hfd.jobs.store import verify
from hfd.models.registry import create_model
from hfd.stream.run import Run
from hfd.stream.session import run_sample


def add_common_options(parser: argparse.ArgumentParser) -> None:
    """The options that every hand-run command has."""
    parser.add_argument("--manifest", required=True, type=Path)
    parser.add_argument("--output-root", required=True, type=Path, help="gets <sample_id>/ folders")
    parser.add_argument("--root", type=Path, default=Path(), help="what manifest paths start from")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", metavar="ID", help="run these samples only")
    parser.add_argument(
        "--set", nargs="*", default=[], metavar="KEY=VALUE", help="more settings, values as YAML"
    )


def parse_settings(texts: Sequence[str]) -> dict[str, Any]:
    """``["threshold=0.6"]`` as ``{"threshold": 0.6}``."""
    settings = {}
    for text in texts:
        key, found, value = text.partition("=")
        if not found:
            raise HfdError(f"is {text!r}", field="--set", remedy="Write KEY=VALUE")
        settings[key] = yaml.safe_load(value)
    return settings


def run_standalone(
    spec: ModelSpec,
    args: argparse.Namespace,
    *,
    max_lag_s: float = 0.5,
    wav_copies: Sequence[str] = (),
) -> int:
    """Run the chosen samples; those whose result is whole and still valid are kept.

    Args:
        spec: the model with its settings.
        args: what `add_common_options` parsed.
        max_lag_s: arrival clock: a unit sent later than this fails the sample.
        wav_copies: further names under which the wav is expected beside the result.

    Returns:
        Exit code: 0, or 1 if a sample failed.

    Raises:
        HfdError: manifest or settings are wrong, the model cannot be loaded or is beyond use.
    """
    samples = read_manifest(args.manifest, args.root)
    if args.only is not None:
        samples = _chosen(samples, args.only, args.manifest)
    args.output_root.mkdir(parents=True, exist_ok=True)
    expected = Expectation(spec, args.root, HashCache(args.output_root / ".hashes"))
    model = create_model(spec.module, spec.settings)
    run: Run | None = None
    failed = 0
    try:
        for sample in samples:
            target = args.output_root / sample.sample_id
            fingerprint = expected.fingerprint(sample)
            if _is_valid(target, fingerprint):
                print(f"{sample.sample_id}: kept")
                continue
            run = run or Run(
                spec.name,
                spec.module,
                spec.settings,
                spec.seed,
                model.load(),
                expected.recipe.record(),
                max_lag_s,
            )
            try:
                said = _run_one(model, run, sample, target, fingerprint, wav_copies)
                print(f"{sample.sample_id}: {said}")
            except ModelBroken as error:
                raise HfdError(
                    f"the model is beyond use: {error}",
                    field=sample.sample_id,
                    remedy="What is finished stays: mend it, then run again",
                ) from error
            except Exception as error:
                failed += 1
                if not isinstance(error, HfdError):
                    traceback.print_exception(error)
                print(f"{sample.sample_id}: failed: {error}", file=sys.stderr)
    finally:
        model.unload()
    return 1 if failed else 0


def _run_one(
    model: DuplexModel,
    run: Run,
    sample: Sample,
    target: Path,
    fingerprint: str,
    wav_copies: Sequence[str],
) -> str:
    part = Path(tempfile.mkdtemp(dir=target.parent, prefix=".part-"))
    try:
        result = run_sample(model, run, sample, part, fingerprint=fingerprint)
        for name in wav_copies:
            shutil.copyfile(part / "assistant_audio.wav", part / name)
        part.chmod(0o755)
        replace_folder(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return f"{result['status']}: {result['text']!r}"


def _chosen(samples: Sequence[Sample], ids: Sequence[str], manifest: Path) -> list[Sample]:
    known = {sample.sample_id: sample for sample in samples}
    if unknown := [name for name in ids if name not in known]:
        raise HfdError(f"has no sample {unknown[0]!r}", file=manifest, field="--only")
    return [known[name] for name in ids]


def _is_valid(folder: Path, fingerprint: str) -> bool:
    try:
        return verify(folder)["fingerprint"] == fingerprint
    except HfdError:
        return False
