"""What is said at once, in one line, before anything is read or written."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hfd.errors import HfdError, require_utf8
from hfd.jobs.future import leave_the_future
from tests.workflow.desk import REPO, Desk


def errors(output: str) -> list[str]:
    return [line for line in output.splitlines() if line.startswith("error: ")]


@pytest.mark.parametrize("locale", ["C", "POSIX", "C.UTF-8"])
def test_names_are_utf_8_in_every_plain_locale(locale: str, desk: Desk) -> None:
    desk.add_samples(["演示1"])
    desk.add_model("any")
    desk.run("check_data", environment={"LC_ALL": locale, "LANG": locale})
    assert (os.fsencode(desk.path) + "/work/checks/演示1.json".encode()) in {
        bytes(path) for path in (desk.path / "work/checks").iterdir()
    }


@pytest.mark.parametrize("encoding", ["gbk", "iso8859-1", "ascii", "euc-jp"])
def test_a_locale_that_is_not_utf_8_is_refused(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: encoding)
    with pytest.raises(HfdError, match=f"encoding is {encoding}, not UTF-8.*LC_ALL=C.UTF-8"):
        require_utf8()


@pytest.mark.parametrize("encoding", ["utf-8", "UTF-8", "utf8"])
def test_utf_8_is_accepted(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: encoding)
    require_utf8()


def test_a_working_folder_with_a_brace_is_one_line(tmp_path: Path) -> None:
    desk = Desk(tmp_path / "a{x}")
    desk.path.mkdir()
    desk.add_samples(["s"])
    (line,) = errors(desk.run("check_data", ok=False))
    assert "a{x}: has a brace" in line


def test_a_checkout_with_a_brace_is_one_line(desk: Desk) -> None:
    checkout = desk.path / "b{y}"
    checkout.mkdir()
    for name in ("Snakefile", "workflow", "scripts", "profiles", "config"):
        (checkout / name).symlink_to(REPO / name)
    desk.repository = checkout
    (line,) = errors(desk.run("check_data", ok=False))
    assert "b{y}: has a brace" in line


def test_a_file_of_the_future_is_dated_anew_or_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [tmp_path / "past", tmp_path / "a", tmp_path / "b"]
    for path in files:
        path.touch()
    for path in files[1:]:
        os.utime(path, (time.time() + 5000, time.time() + 5000))

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    with monkeypatch.context() as patched:
        patched.setattr(os, "utime", refuse)
        with pytest.raises(HfdError, match=r"a: is dated in the future \(and 1 more\)"):
            leave_the_future(files)
    assert leave_the_future(files) == 2 and leave_the_future(files) == 0


def test_decoders_are_not_loaded_to_read_the_workflow(tmp_path: Path) -> None:
    """Each job of a cluster parses the workflow twice."""
    (tmp_path / "av.py").write_text("raise SystemExit('av was imported')\n")
    desk = Desk(tmp_path / "desk")
    desk.path.mkdir()
    desk.add_samples(["s"])
    desk.add_model("any")
    desk.write_config()
    command = [sys.executable, "-m", "snakemake", "-s", str(REPO / "Snakefile"), "-n", "check_data"]
    done = subprocess.run(
        command,
        cwd=desk.path,
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 and "check_sample" in done.stdout, done.stdout + done.stderr
