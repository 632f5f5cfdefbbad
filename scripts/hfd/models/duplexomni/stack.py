"""The server stack: a thinker and a talker that are up, or that are started on the GPUs given."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hfd.errors import HfdError
from hfd.models.duplexomni.context import SLICE_SAMPLES
from hfd.models.duplexomni.memory import check_memory
from hfd.models.duplexomni.request import RequestBody
from hfd.models.duplexomni.settings import Settings, StackLaunch, StackUrls, filled
from hfd.models.duplexomni.wire import MAX_SOUND_BYTES, Endpoint, forget, speak, think
from hfd.models.http import ServerFailed
from hfd.models.media import grey_jpeg
from hfd.models.servers import ChildServer, ServerSpec, gpu_environment, start_all

DEATH_NOTICE_S = 1.0
MOST_FAULTS = 3
"""Samples in a row that the servers, not the samples, may spoil."""


class Stack:
    """Thinker and talker of one worker; one session at a time.

    Attributes:
        settings: where the stack is or how it starts, with this machine's places filled in.
        thinker, talker: where they listen. All three are set by `start`.
    """

    settings: StackUrls | StackLaunch
    thinker: Endpoint
    talker: Endpoint

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._children: list[ChildServer] = []
        self._faults: list[HfdError] = []  # of the last samples, in a row
        self._model = ""

    def start(self) -> dict[str, Any]:
        """Bring the servers up, ask the thinker about itself (its /health), and take one turn.

        Raises:
            HfdError: the weights do not fit the GPUs, a server does not come up or takes no turn,
                or what answers is not this model's thinker.
        """
        self.settings = stack = filled(self._settings.stack)
        if isinstance(stack, StackLaunch):
            check_memory(stack, *_gpus(stack))
            self._children = [
                ChildServer(_thinker_spec(stack)),
                ChildServer(_talker_spec(stack)),
            ]
            start_all(self._children)
        self._connect()
        health = self.thinker.health()
        self.talker.health()
        if not isinstance(health.get("model"), str) or not isinstance(
            health.get("max_model_len"), int
        ):
            raise HfdError(
                "the thinker's /health names no model and max_model_len",
                field="settings.stack.thinker_url",
                remedy="Name the authors' server_thinker.py, not the orchestrator",
            )
        self._model = health["model"]
        with self.session():
            self._warm_up()
        return health

    def ensure(self) -> None:
        """Servers that work, before a sample.

        What has died is started again. After a sample that the servers spoiled, they must take a
        turn of silence first: an engine may be dead behind an HTTP server that is not. Servers of
        ours that cannot are started again, once for each such sample.

        Raises:
            HfdError: a server does not come up, does not take the turn, or one that is not ours is
                gone; or the last `MOST_FAULTS` samples were all spoiled by the servers.
        """
        if len(self._faults) >= MOST_FAULTS:
            raise HfdError(
                f"the last {MOST_FAULTS} samples all ended by a fault of the servers: "
                f"{self._faults[-1].problem}"
            )
        restarted = [child.ensure() for child in self._children]
        if any(restarted):
            self._connect()
        if self._faults or any(restarted):
            try:
                self._warm_up()
            except HfdError as error:
                self._start_again(error)
        self.thinker.health()
        self.talker.health()

    def served(self) -> None:
        """A sample came to its end."""
        self._faults.clear()

    def explained(self, error: ServerFailed) -> HfdError:
        """Count a fault of the servers; returns it with the reason in the log of a server of ours.

        If one has just died, that is the reason.
        """
        explained = self._explained(error)
        self._faults.append(explained)
        return explained

    def _explained(self, error: ServerFailed) -> HfdError:
        deadline = time.monotonic() + DEATH_NOTICE_S
        while self._children and time.monotonic() < deadline:
            try:
                for child in self._children:
                    child.check()
            except HfdError as death:
                return death
            time.sleep(0.05)
        reasons = [
            f"{child.spec.name} says {reason!r} ({child.log})"
            for child in self._children
            if (reason := child.reason())
        ]
        if not reasons:
            return error
        return HfdError(f"{error.problem}; {'; '.join(reasons)}", remedy=error.remedy)

    def _start_again(self, error: HfdError) -> None:
        """Replace servers that are up but do not work."""
        if not self._children:
            raise HfdError(
                f"the servers are up but take no turn: {error.problem}",
                remedy="Read their logs and start them again",
            ) from error
        for child in self._children:
            child.restart()
        for child in self._children:
            child.wait_ready()
        self._connect()
        self._warm_up()

    def _warm_up(self) -> None:
        """One turn of silence through both servers, outside every sample's clock.

        Raises:
            HfdError: it is not answered, with what the servers' logs say.
        """
        wait_s = self._settings.request_timeout_s
        if isinstance(self.settings, StackLaunch):
            wait_s = self.settings.ready_timeout_s
        thinker, talker = self._endpoints(wait_s)
        try:
            take_turn(thinker, talker, self._settings, self._model)
        except HfdError as error:
            problem = f"no warm-up turn: {error.problem}"
            raise self._explained(ServerFailed(problem, remedy=error.remedy)) from error

    @contextmanager
    def session(self) -> Iterator[None]:
        """Hold the stack for one sample; workers that share a running stack wait for each other."""
        if self._children:
            yield
            return
        name = f"hfd-duplexomni-{os.getuid()}-{self.thinker.port}.lock"
        path = Path(tempfile.gettempdir()) / name
        with path.open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def stop(self) -> None:
        """End the servers that were started here."""
        for child in self._children:
            child.stop()

    def _connect(self) -> None:
        self.thinker, self.talker = self._endpoints(self._settings.request_timeout_s)

    def _endpoints(self, timeout_s: float) -> tuple[Endpoint, Endpoint]:
        stack = self.settings
        if isinstance(stack, StackUrls):
            thinker, talker = stack.thinker_url, stack.talker_url
        else:
            thinker, talker = (f"http://127.0.0.1:{child.port}" for child in self._children)
        return (
            Endpoint("thinker", thinker, timeout_s),
            Endpoint("talker", talker, timeout_s, MAX_SOUND_BYTES),
        )


def take_turn(thinker: Endpoint, talker: Endpoint, settings: Settings, model: str) -> None:
    """One slice of silence with a grey video frame, in a session of its own.

    Raises:
        HfdError: a server does not answer it as it should.
    """
    session_id = f"hfd-warm-up-{uuid.uuid4().hex}"
    body = RequestBody(
        model=model,
        session_id=session_id,
        system_prompt=settings.system_prompt,
        temperature=settings.temperature,
        max_tokens=settings.max_tokens,
    )
    side = settings.picture_long_side
    body.add_slice(bytes(2 * SLICE_SAMPLES), grey_jpeg(side, side * 9 // 16), "")
    try:
        blob, _ = think(thinker, session_id, *body.parts)
        speak(talker, session_id, blob)
    finally:
        with suppress(HfdError):
            forget(talker, session_id)


def _thinker_spec(stack: StackLaunch) -> ServerSpec:
    return ServerSpec(
        "duplexomni-thinker",
        [stack.python, str(Path(stack.server_root) / "serving_core" / "server_thinker.py")],
        "http://127.0.0.1:{port}/health",
        gpus=list(range(stack.thinker_tp)),
        env={
            "THINKER_HOST": "127.0.0.1",
            "THINKER_PORT": "{port}",
            "THINKER_MODEL": stack.thinker_weights,
            "THINKER_TP": str(stack.thinker_tp),
            "THINKER_MAX_MODEL_LEN": str(stack.max_model_len),
            "THINKER_GPU_MEM_UTIL": str(stack.thinker_gpu_share),
            "THINKER_HIDDEN_STORE_DIR": "0",
        },
        ready_timeout_s=stack.ready_timeout_s,
    )


def _talker_spec(stack: StackLaunch) -> ServerSpec:
    gpus = list(range(stack.thinker_tp, stack.thinker_tp + stack.talker_tp))
    return ServerSpec(
        "duplexomni-talker",
        [
            stack.python,
            str(Path(stack.server_root) / "serving_core" / "server_talker.py"),
            *("--host", "127.0.0.1", "--port", "{port}", "--tp", str(stack.talker_tp)),
        ],
        "http://127.0.0.1:{port}/health",
        gpus=gpus,
        env={
            "TALKER_MODEL": stack.talker_weights,
            "TALKER_TEMPERATURE": str(stack.talker_temperature),
            "TALKER_TOP_P": str(stack.talker_top_p),
            "TALKER_TOP_K": str(stack.talker_top_k),
            "TALKER_GPU_MEM_UTIL": str(stack.talker_gpu_share),
            "TALKER_MTP_SUBPROC_CUDA_VISIBLE_DEVICES": gpu_environment(gpus[-1:])[
                "CUDA_VISIBLE_DEVICES"
            ],
            "TALKER_MTP_SUBPROC_TP": "1",
            "TALKER_MTP_GPU_MEM_UTIL": str(stack.mtp_gpu_share),
            "TALKER_MTP_PROFILE": "0",
            "TALKER_MTP_VERBOSE_LOG": "0",
            "TALKER_MTP_WORKER_VERBOSE": "0",
        },
        ready_timeout_s=stack.ready_timeout_s,
    )


def _gpus(stack: StackLaunch) -> tuple[int, float]:
    """How many GPUs the job has, and the memory of the smallest in GiB."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if stack.gpu_memory_gib is not None and listed is not None:
        return len([device for device in listed.split(",") if device.strip()]), stack.gpu_memory_gib
    query = ["nvidia-smi", "--query-gpu=memory.total", "--format=csv,noheader,nounits"]
    if listed:
        query.append(f"--id={listed}")
    tool = shutil.which(query[0])
    try:
        if tool is None:
            raise FileNotFoundError("nvidia-smi is not installed")
        answer = subprocess.run(query, capture_output=True, text=True, timeout=60, check=True)
        sizes = [float(line) / 1024 for line in answer.stdout.split()]
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise HfdError(
            f"cannot tell what GPUs there are: {error}",
            field="settings.stack",
            remedy="Run on a machine with NVIDIA GPUs, or name thinker_url and talker_url",
        ) from error
    if not sizes:
        raise HfdError("there is no GPU", field="settings.stack")
    return len(sizes), min(sizes) if stack.gpu_memory_gib is None else stack.gpu_memory_gib
