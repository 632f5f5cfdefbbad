"""Servers as children of the shard's worker: start, readiness, death, restart, end.

Each server runs under a guardian process (guardian.py), which ends it with all its descendants
when the worker goes, in whatever way: no orphan stays on the GPU, not even after a kill -9.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from hfd.errors import HfdError
from hfd.models.settings import make_settings, wrong_setting

GUARDIAN = Path(__file__).with_name("guardian.py")
LOG_FOLDER = Path("logs/servers")
PROBE_INTERVAL_S = 0.1
PROBE_TIMEOUT_S = 2.0
LOG_TAIL_LINES = 15
LOG_TAIL_BYTES = 2**16
PROGRESS_S = 30.0
"""How often a server that is still loading is mentioned."""
_EXCEPTION = re.compile(r"\s*(?:\w+\.)*\w*(?:Error|Exception)\b.*")
"""The last line of a Python traceback."""


@dataclass(frozen=True)
class ServerSpec:
    """How a server is started, as the settings name it.

    Attributes:
        name: for messages and the log's name.
        command: program and arguments, each as text; ``{port}`` in any of them is replaced.
        ready: ``http://…`` (any 2xx answer) or ``tcp://host:port`` (accepts a connection);
            ``{port}`` is replaced.
        port: fixed port, or 0 for a free one, so that two shards may share a node.
        gpus: numbers into the list of GPUs the job was given, e.g. ``[1]`` for its second.
        env: more environment variables; ``{port}`` in a value is replaced.
        ready_timeout_s: how long the weights may take to load.
        stop_timeout_s: how long it may take to end before it is killed.
        max_restarts: how often one worker starts it again after a death.
    """

    name: str
    command: list[Any]
    ready: str
    port: int = 0
    gpus: list[int] = field(default_factory=list)
    env: dict[str, Any] = field(default_factory=dict)
    ready_timeout_s: float = 900.0
    stop_timeout_s: float = 20.0
    max_restarts: int = 3

    @classmethod
    def from_settings(cls, name: str, settings: Any) -> ServerSpec:
        """Check one ``settings.servers.<name>`` of config/models.yaml.

        Raises:
            HfdError: unknown key, wrong type, no command or no readiness address.
        """
        place = f"settings.servers.{name}"
        spec = make_settings(cls, settings, place, name=name)
        if not spec.command:
            raise wrong_setting(f"{place}.command", [], "Write program and arguments")
        if urlsplit(spec.ready).scheme not in ("http", "tcp"):
            remedy = "Write http://… or tcp://host:port, which answers once the server is ready"
            raise wrong_setting(f"{place}.ready", spec.ready, remedy)
        return replace(
            spec,
            command=[str(part) for part in spec.command],
            env={key: str(value) for key, value in spec.env.items()},
        )


def gpu_environment(gpus: Sequence[int]) -> dict[str, str]:
    """Restrict a child to some of the job's GPUs; ``{}`` if the server names none.

    Raises:
        HfdError: the job was given fewer GPUs than a number asks for.
    """
    if not gpus:
        return {}
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is None:
        return {"CUDA_VISIBLE_DEVICES": ",".join(map(str, gpus))}
    devices = [device for device in given.split(",") if device.strip()]
    if max(gpus) >= len(devices):
        raise HfdError(
            f"asks for GPU number {max(gpus)}, the job was given {len(devices)}",
            field="settings.servers.*.gpus",
            remedy="Raise resources.gpu of the model in config/models.yaml, or lower the number",
        )
    return {"CUDA_VISIBLE_DEVICES": ",".join(devices[number] for number in gpus)}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _answers(address: str) -> bool:
    """Whether the readiness address answers now."""
    parts = urlsplit(address)
    try:
        if parts.scheme == "http":
            opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
            with opener.open(address, timeout=PROBE_TIMEOUT_S):
                return True
        with socket.create_connection((parts.hostname, parts.port), timeout=PROBE_TIMEOUT_S):
            return True
    except (OSError, urllib.error.URLError):
        return False


class ChildServer:
    """One server under its guardian; may be started again after a death.

    Attributes:
        spec: how it is started.
        port: the port of the running (or last) process.
        restarts: how often it was started again.
        log: file that takes its output; it is never shortened.
    """

    def __init__(self, spec: ServerSpec, log_folder: Path = LOG_FOLDER) -> None:
        self.spec = spec
        self.port = spec.port
        self.restarts = 0
        # The node's name too: a pid says little where several nodes write into one folder.
        self.log = log_folder / f"{spec.name}.{socket.gethostname()}.{os.getpid()}.log"
        self._guardian: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        return self._guardian is not None and self._guardian.poll() is None

    def launch(self) -> None:
        """Start the process; returns at once, before it is ready.

        Raises:
            HfdError: its port is taken, or a GPU it wants was not given to the job.
        """
        self.port = self.spec.port or _free_port()
        if _answers(f"tcp://127.0.0.1:{self.port}"):
            raise HfdError(
                f"port {self.port} is taken by another program",
                field=f"settings.servers.{self.spec.name}.port",
                remedy="Stop that program, name its URL instead of a command, or use port 0",
            )
        command = [self._filled(part) for part in self.spec.command]
        filled = {key: self._filled(value) for key, value in self.spec.env.items()}
        environment = {**os.environ, **gpu_environment(self.spec.gpus), **filled}
        guard = [sys.executable, "-I", str(GUARDIAN), str(self.spec.stop_timeout_s), *command]
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self._say(f"starting, its log is {self.log}")
        with self.log.open("ab") as output:
            self._guardian = subprocess.Popen(
                guard,
                stdin=subprocess.PIPE,
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,  # a Ctrl-C ends it through the worker, in order
            )

    def wait_ready(self) -> None:
        """Wait until the readiness address answers.

        Raises:
            HfdError: the process ended, or the time is over (then it is stopped).
        """
        began = time.monotonic()
        deadline, mention = began + self.spec.ready_timeout_s, began + PROGRESS_S
        address = self._filled(self.spec.ready)
        while not _answers(address):
            self.check()
            if time.monotonic() > mention:
                mention += PROGRESS_S
                self._say(f"still loading after {time.monotonic() - began:.0f} s: {self.reason()}")
            if time.monotonic() > deadline:
                self.stop()
                raise HfdError(
                    f"server {self.spec.name!r} was not ready after "
                    f"{self.spec.ready_timeout_s:g} s ({address} does not answer){self._tail()}",
                    file=self.log,
                    remedy=f"Read the log, or raise settings.servers.{self.spec.name}"
                    ".ready_timeout_s",
                )
            time.sleep(PROBE_INTERVAL_S)
        self.check()
        self._say(f"ready after {time.monotonic() - began:.1f} s")

    def check(self) -> None:
        """Raise an `HfdError` with the end of the log if the process is not running."""
        if not self.alive:
            code = self._guardian.returncode if self._guardian else None
            raise HfdError(
                f"server_died: server {self.spec.name!r} ended with code {code}{self._tail()}",
                file=self.log,
            )

    def ensure(self) -> bool:
        """Start it again if it has died; True if that was needed.

        Raises:
            HfdError: it has died more often than `max_restarts`, or does not come up.
        """
        if self.alive:
            return False
        self.restart()
        self.wait_ready()
        return True

    def restart(self) -> None:
        """End it, if it still runs, and start it again; returns before it is ready.

        Raises:
            HfdError: it was started again more often than `max_restarts`.
        """
        if self.restarts >= self.spec.max_restarts:
            self.check()
            raise HfdError(
                f"server {self.spec.name!r} was started again {self.restarts} times: "
                f"{self.reason()}",
                file=self.log,
            )
        self.stop()
        self.restarts += 1
        self.launch()

    def reason(self) -> str:
        """The last exception in the log, or its last line where there is none."""
        lines = self._last_lines()
        exceptions = [line.strip() for line in lines if _EXCEPTION.fullmatch(line)]
        return (exceptions or [line.strip() for line in lines] or [""])[-1]

    def stop(self) -> None:
        """End the server with all its descendants and wait for that; fine if it has ended."""
        if self._guardian is None:
            return
        assert self._guardian.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._guardian.stdin.close()
        self._guardian.wait()

    def _filled(self, text: str) -> str:
        return text.replace("{port}", str(self.port))

    def _say(self, text: str) -> None:
        print(f"server {self.spec.name!r}: {text}", file=sys.stderr, flush=True)

    def _tail(self) -> str:
        lines = self._last_lines()[-LOG_TAIL_LINES:]
        return "; its last lines: " + " | ".join(lines) if lines else ""

    def _last_lines(self) -> list[str]:
        """The log's end; a log may have gigabytes."""
        try:
            with self.log.open("rb") as log:
                log.seek(max(0, log.seek(0, os.SEEK_END) - LOG_TAIL_BYTES))
                return log.read().decode("utf-8", "replace").splitlines()
        except OSError:
            return []


def start_all(servers: Iterable[ChildServer]) -> None:
    """Start several servers side by side and wait for all; on failure none is left running."""
    servers = list(servers)
    try:
        for server in servers:
            server.launch()
        for server in servers:
            server.wait_ready()
    except BaseException:
        for server in servers:
            server.stop()
        raise
