"""Run a few samples again, with other sound or under other circumstances, and compare.

``prefix``, ``needle``: a part of the sound changed (hfd.probes.changed_sound). ``repeat``,
``pause``, ``cache``, ``neighbour``, ``vision``, ``jitter``: hfd.probes.disturbed. The samples are
drawn from a hash of the delivered results and a nonce of the auditor's; the unchanged run of each
is compared with what was delivered. Runs in the model's own environment, like infer; what it makes
stays under the scratch folder and never mixes with results.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from hfd.data.manifest import read_manifest
from hfd.errors import run_cli
from hfd.files import write_json
from hfd.jobs.spec import ModelSpec
from hfd.probes import changed_sound, disturbed
from hfd.probes.run import Asked, probe


def main(argv: list[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    spec = ModelSpec.from_environment(args.model)
    samples = read_manifest(args.manifest, args.root)
    asked = Asked(args.kind, args.results, args.scratch, args.nonce, args.samples)
    answer = probe(spec, samples, asked)
    write_json(args.out, answer)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=[*changed_sound.KINDS, *disturbed.KINDS])
    parser.add_argument("--model", required=True, help="its name in $HFD_CONFIG")
    parser.add_argument("--manifest", type=Path, default=Path("data/manifest.jsonl"))
    parser.add_argument("--root", type=Path, default=Path(), help="folder of the manifest's paths")
    parser.add_argument("--samples", type=int, help="how many samples; default 3 or 4")
    parser.add_argument("--results", type=Path, required=True, help="the results it belongs to")
    parser.add_argument("--nonce", default="", help="the auditor's word for drawing the samples")
    parser.add_argument("--scratch", type=Path, required=True, help="folder for files and runs")
    parser.add_argument("--out", type=Path, required=True, help="what was found, as JSON")
    return parser


if __name__ == "__main__":
    run_cli(main)
