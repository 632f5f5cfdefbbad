"""A real Slurm of one node with accounting, from Debian packages (install.sh), without systemd.

slurmctld, slurmd, slurmdbd, MariaDB and munge run as root on 127.0.0.1. Their configuration lies in
a folder of their own; links in /etc/slurm point there while they run: jobs find it nowhere else. A
Slurm that is configured there already is not touched: the test refuses. What a test run that was
killed has left there is taken away.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil

GPUS = 4
ETC = Path("/etc/slurm")
CONFIGURATION = ("slurm.conf", "slurmdbd.conf", "gres.conf", "cgroup.conf")
ACCOUNT = "project"
OWNER = "owner.pid"
"""In a test cluster's folder: the process whose cluster it is."""

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
{accounting}
NodeName={host} NodeAddr=127.0.0.1 CPUs=16 SocketsPerBoard=1 CoresPerSocket=16 \
RealMemory=64000 Gres=gpu:h100:{gpus} State=UNKNOWN
PartitionName=main Nodes={host} Default=YES MaxTime=1-0 State=UP OverSubscribe=NO
"""

ACCOUNTING = """AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort=17819
AccountingStoragePass={folder}/munge.socket
AccountingStorageTRES=gres/gpu
AccountingStorageEnforce=associations"""

NO_ACCOUNTING = "AccountingStorageType=accounting_storage/none"

SLURMDBD_CONF = """AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort=17819
SlurmUser=root
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort=17820
StorageUser=slurm
StoragePass=x
StorageLoc=slurm_acct_db
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
        self._write_configuration(ACCOUNTING)
        self._link_configuration()
        self._start_munge()
        self._start_mariadb()
        self.run("slurmdbd")
        self._register()
        self.run("slurmctld")
        self.run("slurmd")
        self.wait_until_idle()

    @contextmanager
    def without_accounting(self) -> Iterator[None]:
        """Run on as a cluster that never had an accounting database."""
        self._restart_with(NO_ACCOUNTING)
        yield
        self._restart_with(ACCOUNTING)

    def _restart_with(self, accounting: str) -> None:
        for name in ("slurmd", "slurmctld"):
            self.kill(name, signal.SIGTERM)  # so that slurmctld writes down which jobs have ended
        self._write_configuration(accounting)
        self.run("slurmctld")
        self.run("slurmd")
        self.wait_until_idle()

    def stop(self) -> None:
        if (self.folder / "slurmctld.pid").exists():
            self.run("scancel", "--user=root", check=False)
        for name in ("slurmd", "slurmctld", "slurmdbd", "mariadb", "munged"):
            self.kill(name)
        for link in (ETC / name for name in CONFIGURATION):
            if link.is_symlink() and link.readlink().parent == self.folder:
                link.unlink()

    def recover(self) -> None:
        """As before a test, whatever the last one left: daemons up, no job, the node idle."""
        for daemon in ("slurmctld", "slurmd"):
            if self._process(daemon) is None:
                self.run(daemon)
        self.run("scancel", "--user=root", check=False)
        self.run("scontrol", "update", "NodeName=ALL", "State=RESUME", check=False)
        self.wait_until_idle()

    def kill(self, daemon: str, how: signal.Signals = signal.SIGKILL) -> None:
        """Send a daemon a signal and wait until it is gone."""
        if process := self._process(daemon):
            process.send_signal(how)
        while self._process(daemon):
            time.sleep(0.1)

    def _process(self, daemon: str) -> psutil.Process | None:
        """A daemon's process by its pid file, if it lives."""
        try:
            process = psutil.Process(int((self.folder / f"{daemon}.pid").read_text()))
            return process if process.status() != psutil.STATUS_ZOMBIE else None
        except (FileNotFoundError, psutil.NoSuchProcess):
            return None

    def run(self, *command: str, check: bool = True) -> str:
        """Run a Slurm command against this cluster; return what it printed."""
        done = subprocess.run(
            command, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{command}: {done.stdout}"
        return done.stdout

    def submissions(self) -> int:
        """How many jobs have been submitted so far."""
        return (self.folder / "slurmctld.log").read_text().count("_slurm_rpc_submit_batch_job")

    def wait_until_idle(self) -> None:
        self._until("idle", "sinfo", "--noheader", "--format=%T")

    def _write_configuration(self, accounting: str) -> None:
        host = socket.gethostname().split(".")[0]
        text = SLURM_CONF.format(
            host=host, folder=self.folder, port=17817, node_port=17818, gpus=GPUS,
            accounting=accounting.format(folder=self.folder),
        )  # fmt: skip
        (self.folder / "slurm.conf").write_text(text)
        for number in range(GPUS):  # clones of /dev/null stand for the cards
            if not Path(f"/dev/fakegpu{number}").exists():
                os.mknod(f"/dev/fakegpu{number}", 0o20666, os.makedev(1, 3))
        gres = f"AutoDetect=off\nName=gpu Type=h100 File=/dev/fakegpu[0-{GPUS - 1}]\n"
        (self.folder / "gres.conf").write_text(gres)
        (self.folder / "cgroup.conf").write_text("CgroupAutomount=no\n")
        slurmdbd = self.folder / "slurmdbd.conf"
        slurmdbd.touch(mode=0o600)  # slurmdbd refuses one that others can read
        slurmdbd.write_text(SLURMDBD_CONF.format(folder=self.folder))

    def _link_configuration(self) -> None:
        ETC.mkdir(exist_ok=True)
        if left := _left_by_a_killed_run():
            left.stop()
        (self.folder / OWNER).write_text(str(os.getpid()))
        for name in CONFIGURATION:
            link = ETC / name
            assert not link.exists(), f"{link}: this machine has a Slurm of its own"
            link.unlink(missing_ok=True)  # its folder is gone
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

    def _start_mariadb(self) -> None:
        data, socket_file = self.folder / "mysql", self.folder / "mysql.socket"
        self.run("mariadb-install-db", f"--datadir={data}", "--user=root", "--skip-test-db")
        # Names are not resolved, else 127.0.0.1 is localhost and the account below another's.
        options = [
            "--no-defaults", f"--datadir={data}", f"--socket={socket_file}", "--user=root",
            "--bind-address=127.0.0.1", "--port=17820", "--skip-name-resolve",
            "--innodb-flush-log-at-trx-commit=0", f"--pid-file={self.folder}/mariadb.pid",
        ]  # fmt: skip
        with (self.folder / "mariadb.log").open("w") as log:
            subprocess.Popen(["mariadbd", *options], stdout=log, stderr=log, start_new_session=True)
        sql = (
            "create database slurm_acct_db; create user slurm@127.0.0.1 identified by 'x';"
            " grant all on slurm_acct_db.* to slurm@127.0.0.1;"
        )
        self._until("", "mariadb", f"--socket={socket_file}", "--user=root", "-e", "select 1")
        self.run("mariadb", f"--socket={socket_file}", "--user=root", "-e", sql)

    def _register(self) -> None:
        """The cluster, and an account for root's jobs."""
        self._until("", "sacctmgr", "--noheader", "show", "cluster")
        self.run("sacctmgr", "--immediate", "add", "cluster", "tiny")
        self.run("sacctmgr", "--immediate", "add", "account", ACCOUNT)
        self.run("sacctmgr", "--immediate", "add", "user", "root", f"account={ACCOUNT}")

    def _until(self, wanted: str, *command: str) -> None:
        """Repeat a command until it succeeds and prints `wanted`."""
        for _ in range(1200):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode == 0 and wanted in done.stdout:
                return
            time.sleep(0.5)
        logs = [p.read_text()[-2000:] for p in self.folder.glob("*.log")]
        raise AssertionError(f"{command}: {done.stdout}{done.stderr}" + "\n".join(logs))


def _left_by_a_killed_run() -> Cluster | None:
    """The test cluster that /etc/slurm belongs to, if the process that made it is gone."""
    link = ETC / CONFIGURATION[0]
    owner = link.readlink().parent / OWNER if link.is_symlink() else None
    if owner is None or not owner.is_file() or psutil.pid_exists(int(owner.read_text())):
        return None
    return Cluster(owner.parent)
