"""What ROMA takes of a GPU for files of some lengths, and what it says on cards that are smaller.

Random weights in full size. A smaller card is this one with the rest taken: the model finds as much
free memory as it would find there. The smallest come first, as what torch holds grows; the file
after a refusal shows that what the refused load took was given back.
"""

from __future__ import annotations

import argparse
import gc
import json
import sys
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))
from hfd.errors import HfdError, run_cli
from hfd.models.roma.checkpoint import Parts
from roma_files import end_to_end, forced
from roma_model import GivenRoma, random_parts

CONTEXT_GB = 0.6
"""What CUDA takes for itself."""
FILE_S = 24
"""Length of the file that is run after each load; a quarter of it is spoken."""
CASES = (
    (60, 29), (60, 30), (60, 31), (60, None), (120, None), (300, None), (600, None),
    (60, 40), (300, 40), (600, 40),
)  # fmt: skip
"""Seconds of `max_media_s`, and GB of the card (None: all of it)."""


def take_rest(card_gb: float) -> torch.Tensor:
    """Memory that a card of `card_gb` GB would not have."""
    free = torch.cuda.mem_get_info()[0]
    own = torch.cuda.memory_reserved() + CONTEXT_GB * 1e9
    return torch.empty(int(free - (card_gb * 1e9 - own)), dtype=torch.uint8, device="cuda")


def measure(parts: Parts, max_media_s: float, card_gb: float | None) -> dict[str, Any]:
    """One load and one file on a card of that size."""
    gc.collect()
    torch.cuda.empty_cache()
    row: dict[str, Any] = {"max_media_s": max_media_s, "card_gb": card_gb}
    row["weights_gb"] = torch.cuda.memory_allocated() / 1e9
    rest = None if card_gb is None else take_rest(card_gb)
    taken = 0 if rest is None else rest.nbytes
    torch.cuda.reset_peak_memory_stats()
    model = GivenRoma({"model_path": "random", "max_media_s": max_media_s, **forced("auto")}, parts)
    try:
        model.identity = model.load()
    except HfdError as error:
        return row | {"refused": str(error)}
    row["loaded_gb"] = (torch.cuda.memory_allocated() - taken) / 1e9
    row["rtf"] = end_to_end(model, FILE_S)["rtf"]
    row["peak_allocated_gb"] = (torch.cuda.max_memory_allocated() - taken) / 1e9
    row["peak_reserved_gb"] = (torch.cuda.max_memory_reserved() - taken) / 1e9
    model.unload()
    return row


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/roma_memory.json"))
    options = parser.parse_args(argv)
    if not torch.cuda.is_available():
        raise HfdError("there is no GPU to measure", remedy="Use a GPU machine")
    parts, rows = random_parts(torch.device("cuda:0")), []
    with torch.no_grad():
        for case in CASES:
            rows.append(measure(parts, *case))
            print(json.dumps(rows[-1]), flush=True)
            options.out.write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    run_cli(main)
