"""A Slurm for the whole session, and a desk with checked samples for every test."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.system.cluster import Cluster
from tests.system.scene import NAMES, Scene, Table
from tests.workflow.desk import REPO, Desk


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    made = Cluster(tmp_path_factory.mktemp("slurm"))
    try:
        made.start()
        yield made
    finally:
        made.stop()


@pytest.fixture(scope="session")
def checked_desk(tmp_path_factory):
    """A folder whose samples are compiled and checked; copied for every test."""
    desk = Desk(tmp_path_factory.mktemp("template"))
    desk.add_samples(NAMES)
    desk.add_model("any")
    desk.run("check_data")
    return desk


@pytest.fixture(scope="session")
def fault_table(tmp_path_factory):
    """The rows that the fault tests played, as docs/faults.md shows them."""
    table = Table(REPO / "docs" / "faults.md", tmp_path_factory.mktemp("tables"))
    yield table
    table.write()


@pytest.fixture
def scene(cluster: Cluster, checked_desk: Desk, tmp_path: Path, fault_table: Table) -> Scene:
    folder = tmp_path / "desk"
    shutil.copytree(checked_desk.path, folder)
    (folder / "slurm").symlink_to(REPO / "profiles" / "slurm")
    desk = Desk(folder, profile="slurm")
    cluster.recover()
    return Scene(cluster, desk, fault_table)
