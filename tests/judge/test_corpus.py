"""The corpus of hostile folders, and random damage: findings, never a crash, bounded memory."""

import random
import resource
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

import verify_results
from hfd.judge import sample as judged
from hfd.judge.rules.rule import Policy
from hfd.judge.sample import audit_sample
from tests.judge.corpus import CORPUS

MOST_MIB = 400
"""What one folder may take: a gzip bomb may unpack to 256 MiB before it is refused."""


class Peak:
    """The most memory of this process from here on, beyond what it has now."""

    def __init__(self):
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # Linux: forget the peak so far
        self._before = _memory("VmRSS") or _most()

    def grown_mib(self):
        return ((_memory("VmHWM") or _most()) - self._before) / 1024


def _most():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def _memory(key):
    """KiB of a line of /proc/self/status, where there is one."""
    with suppress(OSError):
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith(key))


@pytest.fixture(scope="module")
def base(world, honest, tmp_path_factory):
    target = tmp_path_factory.mktemp("corpus") / world.samples[6].sample_id
    shutil.copytree(honest / target.name, target)
    return target


@pytest.mark.parametrize("name", CORPUS)
def test_every_hostile_folder_is_answered(name, base, tmp_path):
    folder = tmp_path / base.name
    shutil.copytree(base, folder)
    CORPUS[name](folder)
    peak = Peak()
    record = audit_sample(folder, "m", "qa", None, Policy("native_talker"))
    bad = [code for code, verdict in record.verdicts.items() if verdict.status == "fail"]
    assert bad, "it is named as wrong"
    repr(record).encode()  # what is shown can be written down
    assert peak.grown_mib() < MOST_MIB


def test_flipped_bytes_anywhere_are_answered(base, tmp_path):
    choose = random.Random(5)
    for n in range(40):
        folder = tmp_path / str(n) / base.name
        shutil.copytree(base, folder)
        target = choose.choice(sorted(folder.glob("*.*")))
        data = bytearray(target.read_bytes())
        for _ in range(choose.randint(1, 20)):
            data[choose.randrange(len(data))] = choose.randrange(256)
        target.write_bytes(data)
        record = audit_sample(folder, "m", "qa", None, Policy())
        assert any(verdict.status == "fail" for verdict in record.verdicts.values())
        shutil.rmtree(folder)


def test_one_broken_sample_costs_itself_alone(honest, tmp_path, monkeypatch, capsys):
    delivery = tmp_path / "results"
    shutil.copytree(honest, delivery)
    real = judged.audit_sample

    def failing(path, *rest, **more):
        if path.name == "s03":
            raise ZeroDivisionError("nobody thought of this")
        return real(path, *rest, **more)

    monkeypatch.setattr(judged, "audit_sample", failing)
    assert verify_results.main([str(delivery), "--jobs", "1"]) == 3
    told = capsys.readouterr().out
    assert "not judged: s03: the audit could not judge it (ZeroDivisionError" in told
    assert "A10  not_evidenced" in told


def test_what_cannot_be_judged_is_not_called_wrong(tmp_path, capsys):
    assert verify_results.main([str(tmp_path)]) == 3
    assert verify_results.main([str(tmp_path / "nowhere")]) == 3
    assert "error: " in capsys.readouterr().err
