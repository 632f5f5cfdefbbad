"""Other people's repositories, fetched by whoever runs these tests (`make test-peers`)."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.stream.conftest import compiled  # noqa: F401  a fixture


def pytest_collection_modifyitems(items):
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.peers)


@pytest.fixture(scope="session")
def clone():
    """Path of a clone in the folder that HFD_PEERS names; skips the test if there is none."""

    def find(name: str, commit: str) -> Path:
        folder = Path(os.environ.get("HFD_PEERS", "")) / name
        if "HFD_PEERS" not in os.environ or not folder.is_dir():
            pytest.skip(f"HFD_PEERS names no folder with a clone of {name}")
        git = ["git", "-C", str(folder), "rev-parse", "HEAD"]
        found = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
        if found and found != commit:
            pytest.skip(f"{folder} is at {found}, these tests are about {commit}")
        return folder.resolve()

    return find
