"""What Snakemake itself prints, where it says too little or too much."""

from __future__ import annotations

import functools
import logging
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from types import FrameType
from typing import Any

from hfd.errors import HfdError
from hfd.jobs.advice import unknown_target


def add_checks(workflow: Any, starts: Starts) -> None:
    """Let a run begin with a look at what was typed, and a dry run end with what cannot start.

    Snakemake knows the targets only after the Snakefile was read and has no hook for that moment.
    """
    execute = workflow.execute

    @functools.wraps(execute)
    def call(*args: Any, **options: Any) -> Any:
        _check_targets(workflow)
        found = execute(*args, **options)
        starts.end()
        return found

    workflow.execute = call


class Starts:
    """Looks, during a dry run, whether the models that would run can be made at all.

    Module, settings and voice are checked by each model's own interpreter, beside the rest of the
    dry run.
    """

    def __init__(self, scripts: Path) -> None:
        self._scripts = scripts
        self._looking: dict[str, subprocess.Popen[str]] = {}

    def begin(self, model: str, python: str) -> None:
        """Start to look at a model.

        Raises:
            HfdError: there is no such interpreter.
        """
        if model in self._looking:
            return
        command = [program(model, python), str(self._scripts / "preflight.py"), "--model", model]
        self._looking[model] = subprocess.Popen(
            [*command, "--settings-only"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )

    def end(self) -> None:
        """Wait for all; end with exit code 1 and a line for each that cannot start."""
        said = [
            (process.communicate()[1], process.returncode) for process in self._looking.values()
        ]
        if problems := [text.strip() for text, code in said if code]:
            sys.exit("\n".join(problems))


def program(model: str, python: str) -> str:
    """The path of a model's interpreter.

    Raises:
        HfdError: there is none.
    """
    path = shutil.which(os.path.expandvars(python))
    if path is None:
        raise HfdError(
            f"is {python!r}, which is no program here",
            file="config/models.yaml",
            field=f"models.{model}.python",
            remedy="Make the model's environment, or name the interpreter of the one you have",
        )
    return path


def _check_targets(workflow: Any) -> None:
    """End with one line at a target that is no rule, no file and no path."""
    targets = {rule.name for rule in workflow.rules if not rule.has_wildcards()}
    for target in workflow.dag_settings.targets:
        if "/" in target or target in targets or Path(target).exists():
            continue
        if any(rule.name == target for rule in workflow.rules):
            sys.exit(f"error: {target} makes one file at a time: name that file, not the rule")
        sys.exit(f"error: {unknown_target(target, targets)}")


def quiet_after_ctrl_c() -> list[bool]:
    """After a Ctrl-C, keep Snakemake from reporting every job that ended with it as an error.

    Returns:
        A list that is empty until a Ctrl-C has come.
    """
    interrupted: list[bool] = []

    def handler(number: int, frame: FrameType | None) -> None:
        interrupted.append(True)
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, handler)
    logger = logging.getLogger("snakemake.logging")
    logger.addFilter(lambda record: not interrupted or record.levelno < logging.ERROR)
    return interrupted
