"""What would keep a model from starting, found in seconds, all of it at once, before a job waits.

Runs in the model's own environment. Nothing is loaded and no server is started.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import yaml

from hfd.duplex.model import DuplexModel
from hfd.errors import HfdError
from hfd.jobs.gpus import given_by_scheduler, machine_gpus
from hfd.jobs.spec import ModelSpec
from hfd.jobs.worker import make_model

_PIN = re.compile(r"([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^\s;]+)")


@dataclass(frozen=True)
class Line:
    """One thing that was looked at.

    Attributes:
        ok: False: the model cannot start; None: it can, but something is not as it should be.
        text: what was found.
    """

    ok: bool | None
    text: str

    def __str__(self) -> str:
        return f"{({True: 'ok', False: 'FAIL', None: 'note'})[self.ok]:5}{self.text}"


def preflight(
    spec: ModelSpec, gpus: int, environment: Path | None, scheduled: bool
) -> Iterator[Line]:
    """Everything that can be seen without loading the model.

    Args:
        spec: the model.
        gpus: cards it needs.
        environment: its envs/<name>.yaml, to compare what is installed with.
        scheduled: a scheduler gives the cards, this machine's do not matter.
    """
    yield Line(True, f"interpreter {sys.executable}, Python {sys.version.split()[0]}")
    yield from _packages(environment)
    model = None
    try:
        model = make_model(spec)
        yield Line(True, f"module {spec.module}, settings, voice {spec.voice_origin}")
    except HfdError as error:
        yield Line(False, str(error))
    yield from _gpus(gpus, scheduled)
    for name in spec.weights:
        there = Path(name).exists()
        yield Line(there, f"weights {name}{'' if there else ': there is no such file or folder'}")
    yield from _servers(spec.settings)
    if model is not None:
        yield from _secrets(model)
        for problem in model.preflight():
            yield Line(False, problem)


def _packages(environment: Path | None) -> Iterator[Line]:
    """The installed packages against the pins of the environment file; another version is a note.

    What is needed and missing altogether shows when the module is imported.
    """
    if environment is None:
        return
    parts = yaml.safe_load(environment.read_text(encoding="utf-8"))["dependencies"]
    lines: list[str] = next((part["pip"] for part in parts if isinstance(part, dict)), [])
    pins = [found.groups() for found in map(_PIN.match, lines) if found]
    other = []
    for name, wanted in pins:
        try:
            installed = metadata.version(name)
        except metadata.PackageNotFoundError:
            other.append(f"{name} is not installed")
            continue
        if installed.partition("+")[0] != wanted.partition("+")[0]:
            other.append(f"{name} is {installed}, not {wanted}")
    if other:
        yield Line(None, f"other packages than {environment.name}: {'; '.join(other)}")
    else:
        yield Line(True, f"{len(pins)} packages as in {environment.name}")


def _gpus(wanted: int, scheduled: bool) -> Iterator[Line]:
    if not wanted:
        return
    if scheduled or given_by_scheduler():
        yield Line(True, f"{wanted} GPUs are asked of the scheduler")
        return
    found = len(machine_gpus())
    yield Line(found >= wanted, f"{wanted} GPUs are needed, this machine has {found}")


def _servers(settings: Mapping[str, Any]) -> Iterator[Line]:
    """Servers that the worker will start: is the program there, is a fixed port free?"""
    servers = settings.get("servers")
    for name, server in servers.items() if isinstance(servers, Mapping) else ():
        if not isinstance(server, Mapping) or not server.get("command"):
            continue
        program = str(server["command"][0])
        there = shutil.which(program) is not None
        yield Line(there, f"server {name}: {program}{'' if there else ' is no program here'}")
        for argument in server["command"][1:]:
            if str(argument).endswith(".py") and not Path(argument).is_file():
                yield Line(False, f"server {name}: there is no {argument}")
        if (port := server.get("port")) and not _is_free(port):
            yield Line(False, f"server {name}: port {port} is taken by another program")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _secrets(model: DuplexModel) -> Iterator[Line]:
    for name in model.capabilities.secrets:
        there = bool(os.environ.get(name))
        yield Line(there, f"${name}{'' if there else ' is not set: the model reads its key there'}")
