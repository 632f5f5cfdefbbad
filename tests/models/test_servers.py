"""Servers as children: real processes, real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hfd.errors import HfdError
from hfd.models.servers import ChildServer, ServerSpec, gpu_environment, start_all

SCRIPTS = Path(__file__).parents[2] / "scripts"
HTTP = [sys.executable, "-m", "http.server", "--bind", "127.0.0.1", "{port}"]
# A server that ignores SIGTERM and has a child in a session of its own, as engines do.
STUBBORN = """
import signal, subprocess, sys, time
from pathlib import Path
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"],
                         start_new_session=True)
Path(sys.argv[1]).write_text(f"{__import__('os').getpid()} {child.pid}")
time.sleep(600)
"""


def spec(**changes: object) -> ServerSpec:
    settings = {"command": HTTP, "ready": "http://127.0.0.1:{port}/", "ready_timeout_s": 20}
    return ServerSpec.from_settings("web", {**settings, **changes})


def gone(pid: int, within_s: float = 20.0) -> bool:
    """Whether a process has ended (a zombie has)."""
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            if ") Z " in Path(f"/proc/{pid}/stat").read_text():
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.02)
    return False


def wait_for(path: Path) -> str:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if path.exists() and (text := path.read_text()):
            return text
        time.sleep(0.02)
    raise AssertionError(f"{path} was never written")


def test_two_servers_on_free_ports_come_up_side_by_side_and_end(tmp_path: Path) -> None:
    servers = [ChildServer(spec(), tmp_path), ChildServer(spec(), tmp_path)]
    start_all(servers)
    assert servers[0].port != servers[1].port
    for server in servers:
        server.check()
        server.stop()
        assert not server.alive


def test_a_server_that_ends_at_once_is_reported_with_its_code_and_last_words(
    tmp_path: Path,
) -> None:
    code = "import sys; print('no such weights'); sys.exit(3)"
    server = ChildServer(spec(command=[sys.executable, "-c", code]), tmp_path)
    with pytest.raises(HfdError, match=r"code 3.*no such weights"):
        start_all([server])


def test_a_program_that_does_not_exist_is_a_clear_error(tmp_path: Path) -> None:
    server = ChildServer(spec(command=["/no/such/server"]), tmp_path)
    with pytest.raises(HfdError, match=r"127.*cannot be started: /no/such/server"):
        start_all([server])


def test_when_one_server_is_not_ready_in_time_none_is_left(tmp_path: Path) -> None:
    good = ChildServer(spec(), tmp_path)
    slow = [sys.executable, "-c", "import time; time.sleep(600)"]
    late = ChildServer(spec(command=slow, ready_timeout_s=0.5), tmp_path)
    with pytest.raises(HfdError, match=r"not ready after 0.5 s"):
        start_all([good, late])
    assert not good.alive and not late.alive


def test_a_taken_port_is_refused_before_another_program_is_mistaken_for_ours(
    tmp_path: Path,
) -> None:
    first = ChildServer(spec(), tmp_path)
    start_all([first])
    try:
        with pytest.raises(HfdError, match="is taken"):
            ChildServer(spec(port=first.port), tmp_path).launch()
    finally:
        first.stop()


def test_a_killed_server_is_noticed_and_started_again_a_limited_number_of_times(
    tmp_path: Path,
) -> None:
    pid_file = tmp_path / "pid"
    code = (
        "import os, sys, http.server; from pathlib import Path;"
        "Path(sys.argv[1]).write_text(str(os.getpid()));"
        "http.server.test(http.server.SimpleHTTPRequestHandler, port=int(sys.argv[2]),"
        " bind='127.0.0.1')"
    )
    command = [sys.executable, "-c", code, str(pid_file), "{port}"]
    server = ChildServer(spec(command=command, max_restarts=1), tmp_path)
    start_all([server])
    try:
        for restarts in (1, 2):
            os.kill(int(pid_file.read_text()), signal.SIGKILL)
            server._guardian.wait(20)
            with pytest.raises(HfdError, match=r"server_died.*code 137"):
                server.check()
            if restarts == 1:
                assert server.ensure() and server.restarts == 1
            else:
                with pytest.raises(HfdError, match="server_died"):
                    server.ensure()
    finally:
        server.stop()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_no_process_of_a_server_outlives_a_killed_worker(tmp_path: Path, number: int) -> None:
    pids = tmp_path / "pids"
    worker = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys, time; from hfd.models.servers import *; from pathlib import Path\n"
            "s = ChildServer(ServerSpec('s', (sys.executable, '-c', sys.argv[1], sys.argv[2]),"
            " 'tcp://127.0.0.1:{port}', stop_timeout_s=0.5), Path(sys.argv[3]))\n"
            "s.launch(); time.sleep(600)",
            STUBBORN,
            str(pids),
            str(tmp_path),
        ],
        env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
    )
    server, grandchild = map(int, wait_for(pids).split())
    worker.send_signal(number)
    worker.wait(20)
    assert gone(server) and gone(grandchild)


def test_a_server_gets_its_share_of_the_gpus_of_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,GPU-7")
    assert gpu_environment([1]) == {"CUDA_VISIBLE_DEVICES": "GPU-7"}
    assert gpu_environment([]) == {}
    with pytest.raises(HfdError, match="was given 2"):
        gpu_environment([2])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    assert gpu_environment([1]) == {"CUDA_VISIBLE_DEVICES": "1"}


def test_a_misspelt_key_is_refused_by_name() -> None:
    with pytest.raises(HfdError, match=r"settings\.servers\.web\.comand"):
        ServerSpec.from_settings("web", {"comand": ["x"]})


def test_a_start_says_where_the_log_is_and_how_far_the_server_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("hfd.models.servers.PROGRESS_S", 0.2)
    slow = "import time; print('Loading weights 1/2', flush=True); time.sleep(2); raise OSError(9)"
    command = [sys.executable, "-c", slow]
    server = ChildServer(spec(command=command, ready="tcp://127.0.0.1:{port}"), tmp_path)
    server.launch()
    with pytest.raises(HfdError, match="ended with code 1"):
        server.wait_ready()
    said = capfd.readouterr().err
    assert f"starting, its log is {server.log}" in said
    assert "still loading after 0 s: Loading weights 1/2" in said
    assert server.reason() == "OSError: 9"
    assert os.uname().nodename in server.log.name
