"""A real Slurm of one node, from Debian packages, without systemd: slurmctld, slurmd, munge.

Needs root and ``apt-get install slurm-wlm munge`` .
Its configuration lies in a folder of its own; links in /etc/slurm point there while it runs: jobs
find it nowhere else. A Slurm that is configured there already is not touched: the test refuses.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

GPUS = 4
ETC = Path("/etc/slurm")
CONFIGURATION = ("slurm.conf", "gres.conf", "cgroup.conf")

SLURM_CONF = """
ClusterName=tiny
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmdPort={node_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/pgid
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerParameters=sched_interval=1,batch_sched_delay=0,defer_batch
MinJobAge=600
KillWait=5
OverTimeLimit=0
GresTypes=gpu
DefMemPerCPU=200
AccountingStorageType=accounting_storage/none
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 SocketsPerBoard=1 CoresPerSocket=16 \
RealMemory=64000 Gres=gpu:h100:{gpus} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=1-0 State=UP OverSubscribe=NO
"""


@dataclass
class Cluster:
    """The daemons of one test cluster.

    Attributes:
        folder: configuration, state, logs and process ids.
    """

    folder: Path

    def start(self) -> None:
        for name in ("state", "spool"):
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self._write_configuration()
        self._link_configuration()
        self._start_munge()
        self.start_slurmctld()
        self.start_slurmd()
        self.wait_until_idle()

    def stop(self) -> None:
        self.run("scancel", "--user=root", check=False)
        for name in ("slurmd", "slurmctld", "munged"):
            self.kill(name, signal.SIGTERM)
        for name in CONFIGURATION:
            (ETC / name).unlink(missing_ok=True)

    def start_slurmctld(self) -> None:
        self.run("slurmctld")

    def start_slurmd(self) -> None:
        self.run("slurmd")

    def kill(self, daemon: str, how: signal.Signals = signal.SIGKILL) -> None:
        """Signal a daemon by its pid file and wait until it is gone."""
        pid_file = self.folder / f"{daemon}.pid"
        if not pid_file.exists():
            return
        pid = int(pid_file.read_text())
        try:
            os.kill(pid, how)
            for _ in range(100):
                os.kill(pid, 0)
                time.sleep(0.1)
        except ProcessLookupError:
            pass

    def run(self, *command: str, check: bool = True) -> str:
        """Run a Slurm command against this cluster; return what it printed."""
        done = subprocess.run(
            command, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{command}: {done.stdout}"
        return done.stdout

    def jobs(self) -> list[str]:
        """Ids of the running jobs."""
        return self.run("squeue", "--noheader", "--states=RUNNING", "--format=%i").split()

    def submissions(self) -> int:
        """How many jobs have been submitted so far."""
        return (self.folder / "slurmctld.log").read_text().count("_slurm_rpc_submit_batch_job")

    def wait_until_idle(self) -> None:
        for _ in range(120):
            if "idle" in self.run("sinfo", "--noheader", "--format=%T", check=False):
                return
            time.sleep(0.5)
        raise AssertionError((self.folder / "slurmctld.log").read_text()[-3000:])

    def _write_configuration(self) -> None:
        host = socket.gethostname().split(".")[0]
        text = SLURM_CONF.format(
            host=host, folder=self.folder, port=17817, node_port=17818, gpus=GPUS,
        )  # fmt: skip
        (self.folder / "slurm.conf").write_text(text)
        for number in range(GPUS):  # clones of /dev/null stand for the cards
            if not Path(f"/dev/fakegpu{number}").exists():
                os.mknod(f"/dev/fakegpu{number}", 0o20666, os.makedev(1, 3))
        gres = f"AutoDetect=off\nName=gpu Type=h100 File=/dev/fakegpu[0-{GPUS - 1}]\n"
        (self.folder / "gres.conf").write_text(gres)
        (self.folder / "cgroup.conf").write_text("CgroupAutomount=no\n")

    def _link_configuration(self) -> None:
        ETC.mkdir(exist_ok=True)
        for name in CONFIGURATION:
            link = ETC / name
            assert not link.exists(), f"{link}: this machine has a Slurm of its own"
            link.unlink(missing_ok=True)  # left by a test run that was killed
            link.symlink_to(self.folder / name)

    def _start_munge(self) -> None:
        key = self.folder / "munge.key"
        key.write_bytes(os.urandom(128))
        key.chmod(0o400)
        self.run(
            "munged", "--force", f"--socket={self.folder}/munge.socket", f"--key-file={key}",
            f"--pid-file={self.folder}/munged.pid", f"--log-file={self.folder}/munged.log",
            f"--seed-file={self.folder}/munged.seed",
        )  # fmt: skip
