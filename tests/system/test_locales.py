"""Real locales that are not UTF-8, compiled by localedef (Debian package locales)."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.workflow.desk import REPO, Desk

pytestmark = pytest.mark.system


@pytest.mark.parametrize(
    ("name", "charmap"), [("zh_CN", "GBK"), ("zh_CN", "GB18030"), ("de_DE", "ISO-8859-1")]
)
def test_a_locale_that_is_not_utf_8_is_refused_before_anything_is_written(
    name: str, charmap: str, tmp_path: Path
) -> None:
    locale = f"{name}.{charmap}"
    subprocess.run(["localedef", "-i", name, "-f", charmap, tmp_path / locale], check=True)
    desk = Desk(tmp_path / "desk", profile=str(REPO / "profiles" / "local"))
    desk.path.mkdir()
    desk.add_samples(["演示1"])
    desk.add_model("any")
    given = {"LOCPATH": str(tmp_path), "LC_ALL": locale}
    said = desk.run("check_data", ok=False, environment=given)
    (line,) = [line for line in said.splitlines() if line.startswith("error: ")]
    assert "not UTF-8" in line and "LC_ALL=C.UTF-8" in line
    assert not (desk.path / "work").exists()
    desk.run("check_data", environment=given | {"LC_ALL": "C.UTF-8"})
    assert (desk.path / "work/checks/演示1.json").is_file()
