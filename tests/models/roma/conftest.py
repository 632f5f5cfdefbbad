"""A tiny random snapshot of the true architecture, built once; see scripts/make_roma_tiny.py.

These tests need the environment of envs/roma.yaml; without torch the folder is left out.
"""

from importlib.util import find_spec

import pytest

if find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def snapshot(tmp_path_factory):
    """Folder of the tiny snapshot."""
    from make_roma_tiny import make_snapshot

    folder = tmp_path_factory.mktemp("roma") / "snapshot"
    make_snapshot(folder)
    return folder


@pytest.fixture(scope="session")
def parts(snapshot):
    """The tiny snapshot, loaded."""
    from hfd.models.roma.checkpoint import load_snapshot
    from hfd.models.roma.settings import parse_settings

    return load_snapshot(parse_settings({"model_path": str(snapshot), "device": "cpu"}))
