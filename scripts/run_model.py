"""Run any configured model over a manifest by hand, without Snakemake.

Runs in the model's own environment. Example:
python scripts/run_model.py --model cascade --manifest data/manifest.jsonl --output-root out
"""

from __future__ import annotations

import argparse
from pathlib import Path

from hfd.errors import HfdError, run_cli
from hfd.jobs.options import add_common_options, parse_settings

MODELS_FILE = Path(__file__).parents[1] / "config" / "models.yaml"


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", required=True, help="its name in the models file")
    parser.add_argument("--models-file", type=Path, default=MODELS_FILE)
    add_common_options(parser)
    args = parser.parse_args(argv)
    import yaml

    from hfd.jobs.spec import ModelSpec
    from hfd.jobs.standalone import run_standalone

    models = yaml.safe_load(args.models_file.read_text(encoding="utf-8"))["models"]
    if args.model not in models:
        raise HfdError(
            f"has no model {args.model!r}",
            file=args.models_file,
            field="models",
            remedy=f"Known: {', '.join(sorted(models))}",
        )
    entry = models[args.model]
    settings = {**entry.get("settings", {}), **parse_settings(args.set)}
    spec = ModelSpec(
        args.model,
        entry["module"],
        settings,
        args.seed,
        module_path=entry.get("module_path") or str(args.models_file.parent),
        sessions=entry.get("sessions", 1),
    )
    return run_standalone(spec, args)


if __name__ == "__main__":
    run_cli(main)
