"""Run Aero over a manifest by hand: the team's command line over scripts/run_model.py's machinery.

Both servers are already up. The workflow does the same with shards, retries and audit, and starts
the servers too: ``snakemake results_aero``.
"""

from __future__ import annotations

import argparse

from hfd.errors import run_cli
from hfd.jobs.options import add_common_options, parse_settings


def main(argv: list[str] | None = None) -> int:
    """Entry point; 1 if a sample failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--url", default="ws://127.0.0.1:8090/v1/aero/realtime", help="Aero server (%(default)s)"
    )
    parser.add_argument(
        "--tts-url", default="ws://127.0.0.1:8091/v1/tts/stream", help="TTS server (%(default)s)"
    )
    parser.add_argument("--record", action="store_true", help="keep the raw frames of both sockets")
    parser.add_argument(
        "--max-lag", type=float, default=0.5, help="seconds; a unit sent later fails the sample"
    )
    add_common_options(parser)
    args = parser.parse_args(argv)
    from hfd.jobs.spec import ModelSpec
    from hfd.jobs.standalone import run_standalone
    from hfd.models.aero import TEAM_WAV

    settings = {"url": args.url, "tts_url": args.tts_url, "record": args.record}
    settings |= parse_settings(args.set)
    spec = ModelSpec("aero", "aero", settings, args.seed)
    return run_standalone(spec, args, max_lag_s=args.max_lag, wav_copies=[TEAM_WAV])


if __name__ == "__main__":
    run_cli(main)
