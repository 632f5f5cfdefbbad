"""This repository as somebody else's fresh clone."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.workflow.desk import REPO

AUTHOR = ("-c", "user.name=test", "-c", "user.email=test@localhost")


def clone_repository(clone: Path) -> Path:
    """This repository's files, committed to a repository of their own.

    As they are, changes too; it works where this is an unpacked archive or somebody else's clone.
    """
    subprocess.run(["git", "init", "--quiet", clone], check=True)
    here = ["git", f"--git-dir={clone / '.git'}", f"--work-tree={REPO}"]
    subprocess.run([*here, "add", "--all"], cwd=REPO, check=True)
    subprocess.run([*here, *AUTHOR, "commit", "--quiet", "--message=clone"], cwd=REPO, check=True)
    subprocess.run(["git", "-C", clone, "reset", "--quiet", "--hard"], check=True)
    return clone
