"""Say everything that would keep a model from starting. Usually: snakemake preflight_<model>.

Runs in the model's own environment; exit code 1 if it could not start.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from hfd.errors import HfdError, run_cli
from hfd.files import write_json


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="its name in $HFD_CONFIG")
    parser.add_argument("--gpus", type=int, default=0, help="graphics cards it needs")
    parser.add_argument("--environment", type=Path, help="envs/<name>.yaml to compare with")
    parser.add_argument("--scheduled", action="store_true", help="a scheduler gives the cards")
    parser.add_argument("--settings-only", action="store_true", help="module, settings, voice")
    parser.add_argument("--out", type=Path, help="gets what was found, as JSON")
    args = parser.parse_args(argv)
    from hfd.jobs.preflight import preflight
    from hfd.jobs.spec import ModelSpec
    from hfd.jobs.worker import make_model

    spec = ModelSpec.from_environment(args.model)
    if args.settings_only:
        make_model(spec)
        return
    lines = []
    for line in preflight(spec, args.gpus, args.environment, args.scheduled):
        print(f"{args.model}: {line}", flush=True)
        lines.append(line)
    failed = [line.text for line in lines if line.ok is False]
    if failed:
        raise HfdError(
            f"cannot start for {len(failed)} reasons, see above" if failed[1:] else failed[0],
            field=args.model,
        )
    if args.out:
        write_json(args.out, {"model": args.model, "found": [str(line) for line in lines]})


if __name__ == "__main__":
    run_cli(main)
