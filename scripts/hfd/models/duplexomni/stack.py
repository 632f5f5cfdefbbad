"""The server stack: a thinker and a talker that are up, or that are started on the GPUs given."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hfd.errors import HfdError
from hfd.models.duplexomni.memory import check_memory
from hfd.models.duplexomni.settings import Settings, StackLaunch, StackUrls, filled
from hfd.models.duplexomni.wire import Endpoint
from hfd.models.servers import ChildServer, ServerSpec, gpu_environment, start_all

DEATH_NOTICE_S = 1.0


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

    def start(self) -> dict[str, Any]:
        """Bring the servers up and ask the thinker about itself (its /health).

        Raises:
            HfdError: the weights do not fit the GPUs, a server does not come up, or what answers
                is not this model's thinker.
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
        return health

    def ensure(self) -> None:
        """Start again what has died since the last sample; servers of others must answer.

        Raises:
            HfdError: a server does not come up, or one that is not ours is gone.
        """
        restarted = [child.ensure() for child in self._children]
        if any(restarted):
            self._connect()
        self.thinker.health()
        self.talker.health()

    def check(self) -> None:
        """Raise the death notice of a server of ours that has just ended."""
        deadline = time.monotonic() + DEATH_NOTICE_S
        while self._children and time.monotonic() < deadline:
            for child in self._children:
                child.check()
            time.sleep(0.05)

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
        stack, timeout_s = self.settings, self._settings.request_timeout_s
        if isinstance(stack, StackUrls):
            urls = (stack.thinker_url, stack.talker_url)
        else:
            urls = tuple(f"http://127.0.0.1:{child.port}" for child in self._children)
        self.thinker = Endpoint("thinker", urls[0], timeout_s)
        self.talker = Endpoint("talker", urls[1], timeout_s)


def _thinker_spec(stack: StackLaunch) -> ServerSpec:
    return ServerSpec(
        "duplexomni-thinker",
        (stack.python, str(Path(stack.server_root) / "serving_core" / "server_thinker.py")),
        "http://127.0.0.1:{port}/health",
        gpus=tuple(range(stack.thinker_tp)),
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
    gpus = tuple(range(stack.thinker_tp, stack.thinker_tp + stack.talker_tp))
    return ServerSpec(
        "duplexomni-talker",
        (
            stack.python,
            str(Path(stack.server_root) / "serving_core" / "server_talker.py"),
            *("--host", "127.0.0.1", "--port", "{port}", "--tp", str(stack.talker_tp)),
        ),
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
