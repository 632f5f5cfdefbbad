"""Files that other people made to break readers, in the place of a result's own: named, never more.

SciPy's wheel holds odd wavs and broken zlib streams; JSONTestSuite and go-fuzz-corpus are
repositories (`make test-peers`).
"""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest
import scipy.io

import verify_results
from hfd.judge.rules.rule import Policy
from hfd.judge.sample import audit_sample
from hfd.judge.witness import read_log
from tests.judge.world import Mute, run_model
from tests.peers.conftest import clone  # noqa: F401  a fixture

WAVS = sorted((Path(scipy.io.__file__).parent / "tests" / "data").glob("*.wav"))
BROKEN_ZLIB = sorted(
    (Path(scipy.io.__file__).parent / "matlab" / "tests" / "data").glob("corrupted_zlib_*.mat")
)
MATLAB_HEAD = 136
"""Bytes before the zlib stream of a MAT file: its header, and the element's type and length."""
HEAD = bytes.fromhex("1f8b08000000000004ff")
STREAMS_COMMIT = "c42c1b2914c7503500996ee15927d3ab3d2ba968"
JSON_COMMIT = "1ef36fa01286573e846ac449e8683f8833c5b26a"


@pytest.fixture(scope="module")
def silent(world, tmp_path_factory):
    """A result without speech: nothing takes time but the reading."""
    results = run_model(world, "mute", Mute, ids=["s02"])
    target = tmp_path_factory.mktemp("foreign") / "s02"
    shutil.move(results / "s02", target)
    return target


def named(folder: Path) -> set[str]:
    """The files that the audit of a folder finds wrong; it does not raise."""
    record = audit_sample(folder, "m", "qa", None, Policy())
    repr(record).encode()
    return {
        finding["file"]
        for verdict in record.verdicts.values()
        for finding in verdict.evidence.get("findings", ())
    }


def test_scipy_s_odd_wavs_are_named(silent, tmp_path):
    if not WAVS:
        pytest.skip("this SciPy was installed without its test files")
    folder = tmp_path / "s02"
    shutil.copytree(silent, folder)
    for wav in WAVS:
        shutil.copyfile(wav, folder / "assistant_audio.wav")
        assert "assistant_audio.wav" in named(folder), wav.name


def test_scipy_s_broken_streams_are_named(silent, tmp_path):
    """The bodies of zlib streams behind the header that the workflow's traces have."""
    if not BROKEN_ZLIB:
        pytest.skip("this SciPy was installed without its test files")
    folder = tmp_path / "s02"
    shutil.copytree(silent, folder)
    for case in BROKEN_ZLIB:
        (folder / "trace.jsonl.gz").write_bytes(HEAD + case.read_bytes()[MATLAB_HEAD + 2 :])
        assert "trace.jsonl.gz" in named(folder), case.name


@pytest.mark.peers
@pytest.mark.parametrize("kind, rest", [("gzip", None), ("zlib", 2), ("flate", 0)])
def test_streams_that_fuzzers_found_are_named_in_a_trace(kind, rest, clone, silent, tmp_path):  # noqa: F811
    """As they are, or the deflated part of them (`rest`) behind the workflow's header."""
    folder = tmp_path / "s02"
    shutil.copytree(silent, folder)
    cases = sorted((clone("go-fuzz-corpus", STREAMS_COMMIT) / kind / "corpus").iterdir())
    assert len(cases) > 200
    for case in cases:
        data = case.read_bytes()
        (folder / "trace.jsonl.gz").write_bytes(data if rest is None else HEAD + data[rest:])
        assert "trace.jsonl.gz" in named(folder), case.name


@pytest.mark.peers
@pytest.mark.parametrize("name", ["result.json", "provenance.json"])
def test_json_of_every_kind_is_named_in_a_document(name, clone, silent, tmp_path):  # noqa: F811
    folder = tmp_path / "s02"
    shutil.copytree(silent, folder)
    for case in sorted((clone("JSONTestSuite", JSON_COMMIT) / "test_parsing").iterdir()):
        (folder / name).write_bytes(case.read_bytes())
        assert name in named(folder), case.name


@pytest.mark.peers
def test_json_of_every_kind_is_named_in_a_trace_and_a_log(clone, silent, tmp_path):  # noqa: F811
    folder = tmp_path / "s02"
    shutil.copytree(silent, folder)
    rows = gzip.decompress((folder / "trace.jsonl.gz").read_bytes()).split(b"\n")
    for case in sorted((clone("JSONTestSuite", JSON_COMMIT) / "test_parsing").iterdir()):
        data = case.read_bytes()
        write_zipped(folder, b"\n".join([*rows[:5], data, *rows[5:]]))
        assert "trace.jsonl.gz" in named(folder), case.name
        log = tmp_path / "log.jsonl"
        log.write_bytes(data + b"\n")
        assert read_log(log).problems, case.name


def write_zipped(folder: Path, data: bytes) -> None:
    """A trace of any bytes, with the header that the workflow's have."""
    with (
        (folder / "trace.jsonl.gz").open("wb") as raw,
        gzip.GzipFile(filename="", fileobj=raw, mode="wb", compresslevel=1, mtime=0) as file,
    ):
        file.write(data)


@pytest.mark.peers
def test_a_delivery_of_such_files_is_not_verified_and_leaves_no_traceback(
    clone,  # noqa: F811
    silent,
    tmp_path,
    capsys,
):
    cases = sorted((clone("JSONTestSuite", JSON_COMMIT) / "test_parsing").iterdir())[::8]
    for number, case in enumerate(cases):
        folder = tmp_path / "results" / f"n{number}"
        shutil.copytree(silent, folder)
        (folder / "result.json").write_bytes(case.read_bytes())
    assert verify_results.main([str(tmp_path / "results"), "--jobs", "1"]) == 1
    told = capsys.readouterr()
    assert "not judged" not in told.out and "Traceback" not in told.out + told.err
    assert told.out.count("/result.json") >= len(cases)
