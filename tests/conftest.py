"""The demo's data, made once per test session, with the packages that `make demo` keeps."""

from pathlib import Path

import pytest

PACKAGES = Path(__file__).parents[1] / ".demo/packages"


@pytest.fixture(scope="session")
def demo_folder(tmp_path_factory):
    from hfd.data.demo_files import make_demo  # a model's environment lacks what it needs

    folder = tmp_path_factory.mktemp("demo") / "data"
    make_demo(folder, PACKAGES)
    return folder
