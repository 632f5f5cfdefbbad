"""What all tests share: second chances in real time, and the demo's data."""

from pathlib import Path

import pytest

PACKAGES = Path(__file__).parents[1] / ".demo/packages"


def pytest_collection_modifyitems(items):
    """Only a test that measures real time is tried again: the machine may have been busy."""
    for item in items:
        if item.get_closest_marker("realtime"):
            item.add_marker(pytest.mark.flaky(reruns=2, reruns_delay=2))


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory):
    """Made once, with the packages that `make demo` keeps."""
    from hfd.data.demo_files import make_demo  # a model's environment lacks what it needs

    folder = tmp_path_factory.mktemp("demo") / "data"
    make_demo(folder, PACKAGES)
    return folder


def pytest_addoption(parser):
    """Options of the contract suite (tests/contract): one model, also from outside."""
    parser.addoption("--case", default="*", help="folder of tests/models whose model takes part")
    parser.addoption("--model", help="module of a model, as in config/models.yaml")
    parser.addoption("--model-settings", default="{}", help="its settings, as JSON")
    parser.addoption("--model-path", help="folder in which its module lies")
