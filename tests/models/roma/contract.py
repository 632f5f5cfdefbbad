"""ROMA in the contract suite: a tiny random snapshot of the true architecture."""

from contextlib import contextmanager

import pytest

from tests.contract.case import Case


@contextmanager
def peer(folder):
    import torch

    from make_roma_tiny import make_snapshot
    from tests.models.roma.helpers import TINY

    torch.set_num_threads(1)
    make_snapshot(folder / "snapshot")
    yield {"model_path": str(folder / "snapshot"), "threshold": 0.0, **TINY}


CASE = Case("roma", "roma", peer, marks=(pytest.mark.heavy,))
