"""A fresh desk for every test."""

import pytest

from tests.workflow.desk import Desk


@pytest.fixture
def desk(tmp_path):
    return Desk(tmp_path)
