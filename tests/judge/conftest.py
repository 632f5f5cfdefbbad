"""One world and its honest results for all tests of the judge; tests copy before they change."""

from __future__ import annotations

import shutil

import pytest

from tests.judge.world import build_world, run_model


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    return build_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="session")
def honest(world):
    """``results/talker`` of an honest model."""
    return run_model(world, "talker")


@pytest.fixture
def folder(world, honest, tmp_path):
    """A private copy of one honest result folder."""
    sample_id = world.samples[3].sample_id
    target = tmp_path / sample_id
    shutil.copytree(honest / sample_id, target)
    return target
