"""Make canary samples from a nonce: words and colours to be remembered, asked for late.

The voice is the embedded model's, so this runs in its environment.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.signal import resample_poly

from hfd.data.canary import drawn_canaries, make_canaries
from hfd.errors import run_cli
from hfd.media_time import SAMPLE_RATE
from hfd.models.cascade.voice import RATE, Voice


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nonce", required=True, help="the auditor's word: draws what is asked")
    parser.add_argument("--out", type=Path, required=True, help="folder to fill")
    args = parser.parse_args(argv)
    voice = Voice()

    def say(sentence: str) -> np.ndarray:
        sound = resample_poly(voice.say(sentence, [1]), SAMPLE_RATE, RATE)
        return np.rint(20_000 * sound / np.abs(sound).max()).astype(np.int16)

    make_canaries(args.nonce, say, args.out)
    print(f"{args.out}: {len(drawn_canaries(args.nonce))} canaries")
    return 0


if __name__ == "__main__":
    run_cli(main)
