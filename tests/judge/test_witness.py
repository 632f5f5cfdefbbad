"""The witness's log against a delivery: cheats after the fact are named, honest runs are not."""

import base64
import hashlib
import http.server
import json
import multiprocessing
import shutil
import subprocess
import threading
from dataclasses import replace

import pytest

import verify_results
import witness_key
from hfd.errors import HfdError
from hfd.files import canonical_json
from hfd.jobs.witness_log import append
from hfd.judge.witness import read_log
from tests.judge.forge import Forgery
from tests.judge.world import run_model

IDS = ("s02", "s03", "s04")


def entry(kind, sample_id, folder=None, **fields):
    base = {"kind": kind, "model": "talker", "sample_id": sample_id, "attempt": 1, **fields}
    if folder is None:
        return base
    data = (folder / sample_id / "provenance.json").read_bytes()
    tail = json.loads(data)["trace"]["tail"]
    return base | {"tail": tail, "provenance_sha256": hashlib.sha256(data).hexdigest()}


@pytest.fixture(scope="module")
def run(world, honest, tmp_path_factory):
    """A delivery of three samples and the log of their run; one was tried twice."""
    root = tmp_path_factory.mktemp("witness")
    for name in IDS:
        shutil.copytree(honest / name, root / "results_talker" / name)
    witness_key.main([str(root / "witness")])
    append(root / "witness", entry("begin", "s02"))
    append(root / "witness", entry("error", "s02", error="the server is gone"))
    for name in IDS:
        append(root / "witness", entry("begin", name))
        append(root / "witness", entry("done", name, root / "results_talker"))
    return root


@pytest.fixture
def copy(run, tmp_path):
    shutil.copytree(run, tmp_path / "copy")
    return tmp_path / "copy"


def verified(root, capsys, *more, folder="results_talker"):
    log, key = root / "witness" / "log.jsonl", root / "witness" / "key.pub.pem"
    args = [str(root / folder), "--jobs", "1", "--witness", str(log), "--witness-key", str(key)]
    capsys.readouterr()
    code = verify_results.main([*args, *more])
    return code, capsys.readouterr().out


def test_an_honest_run_is_verified_and_its_attempts_are_shown(copy, capsys):
    code, told = verified(copy, capsys)
    assert code == 0, told
    assert "s02: 2 attempts: begin (line 2), error (line 3: the server is gone)" in told
    assert "s03: " not in told
    assert (copy / "witness" / "key.pem").stat().st_mode & 0o077 == 0


def test_one_sample_s_folder_is_held_against_its_own_lines(copy, capsys):
    assert verified(copy, capsys, folder="results_talker/s03")[0] == 0


def test_a_sample_that_was_finished_twice_is_honest_where_the_last_is_delivered(copy, capsys):
    append(copy / "witness", entry("done", "s03", copy / "results_talker"))
    assert verified(copy, capsys)[0] == 0


def lines_of(root):
    return (root / "witness" / "log.jsonl").read_bytes().splitlines(keepends=True)


def rewrite(root, lines):
    (root / "witness" / "log.jsonl").write_bytes(b"".join(lines))


def edited_and_sealed(root, world):
    forgery = Forgery(root / "results_talker/s03")
    forgery.drop(forgery.of("text")[-1:])
    forgery.seal()


def settings_edited(root, world):
    forgery = Forgery(root / "results_talker/s03")
    forgery.provenance["model"]["weights"] = "b" * 64
    forgery.write_documents()


def dropped(root, world):
    shutil.rmtree(root / "results_talker/s03")


def best_of_two(root, world):
    """The second run of a sample is logged, the first one's files are delivered."""
    results = run_model(replace(world, root=root / "again"), "talker", ids=["s03"], silence_s=0.7)
    append(root / "witness", entry("begin", "s03"))
    append(root / "witness", entry("done", "s03", results))


def never_logged(root, world):
    """Made outside of the run, put among its results."""
    shutil.copytree(world.root / "results/talker/s05", root / "results_talker/s05")


def line_removed(root, world):
    lines = lines_of(root)
    rewrite(root, lines[:2] + lines[3:])


def lines_swapped(root, world):
    lines = lines_of(root)
    rewrite(root, [*lines[:4], lines[6], lines[5], lines[4], *lines[7:]])


def line_edited(root, world):
    lines = lines_of(root)
    rewrite(root, [*lines[:2], lines[2].replace(b"gone", b"busy"), *lines[3:]])


def written_anew_with_another_key(root, world):
    """The whole log made again without the failed attempt, chain and signatures in order."""
    other = root / "other"
    witness_key.main([str(other)])
    for line in lines_of(root)[3:]:
        value = json.loads(line)
        kept = ("kind", "model", "sample_id", "attempt", "tail", "provenance_sha256")
        append(other, {name: value[name] for name in kept if name in value})
    shutil.copyfile(other / "log.jsonl", root / "witness" / "log.jsonl")


CHEATS = {
    edited_and_sealed: "s03: was changed: its trace is not the one that was finished (line 7)",
    settings_edited: "s03: was changed: provenance.json is not what was finished (line 7)",
    dropped: "s03: was finished (line 7), but is not delivered",
    best_of_two: "s03: was picked: line 7 is delivered, but line 11 was finished after it",
    never_logged: "s05: is delivered, but was never finished",
    line_removed: "line 3: does not follow the line before it",
    lines_swapped: "line 5: does not follow the line before it",
    line_edited: "line 3: is not signed by the log's key",
    written_anew_with_another_key: "line 1: is not signed by the log's key",
}


@pytest.mark.parametrize("cheat", CHEATS, ids=lambda cheat: cheat.__name__)
def test_a_cheat_after_the_fact_is_named(cheat, copy, world, honest, capsys):
    cheat(copy, world)
    code, told = verified(copy, capsys)
    assert code == 1
    assert f"error: log.jsonl: {CHEATS[cheat]}" in told, told


def test_without_the_key_the_log_s_own_is_named(copy, capsys):
    log = copy / "witness" / "log.jsonl"
    assert verify_results.main([str(copy / "results_talker"), "--witness", str(log)]) == 0
    told = capsys.readouterr().out
    assert f"signed by key {json.loads(lines_of(copy)[0])['key']}, which only the log" in told


def test_a_line_that_a_killed_writer_left_torn_costs_no_entry(copy, capsys):
    with (copy / "witness" / "log.jsonl").open("ab") as log:
        log.write(b'{"attempt":1,"fi')
    append(copy / "witness", entry("done", "s03", copy / "results_talker"))
    code, told = verified(copy, capsys)
    assert code == 0 and "witness: line 10 is torn" in told


@pytest.mark.parametrize(
    "data", [b"", b"\n\n", b"[]\n", b"\xff\n" * 9, b'{"seq":0}\n', b'{"seq":1e999}\n', b"[" * 9999]
)
def test_a_hostile_log_is_answered(data, copy, capsys):
    (copy / "witness" / "log.jsonl").write_bytes(data)
    code, told = verified(copy, capsys)
    assert code == 1 and "error: log.jsonl: " in told


def test_workers_of_many_nodes_write_one_chain(tmp_path):
    witness_key.main([str(tmp_path)])
    context = multiprocessing.get_context("spawn")
    with context.Pool(4) as pool:
        pool.starmap(append, [(tmp_path, entry("begin", f"s{n}")) for n in range(60)])
    log = read_log(tmp_path / "log.jsonl", tmp_path / "key.pub.pem")
    assert log.problems == [] and {e.sample_id for e in log.entries} == {f"s{n}" for n in range(60)}


def test_a_key_is_never_replaced_and_a_folder_without_one_is_named(tmp_path):
    witness_key.main([str(tmp_path)])
    with pytest.raises(HfdError, match="is there already"):
        witness_key.main([str(tmp_path)])
    (tmp_path / "key.pem").write_text("no key")
    with pytest.raises(HfdError, match=r"key\.pem: cannot be read"):
        append(tmp_path, entry("begin", "s1"))


OPENSSL = shutil.which("openssl")
needs_openssl = pytest.mark.skipif(OPENSSL is None, reason="needs the openssl command")
CONFIG = """
[req]
distinguished_name = dn
[dn]
[ca]
basicConstraints = critical,CA:TRUE
[stamp]
extendedKeyUsage = critical,timeStamping
[tsa]
serial = {folder}/serial
signer_cert = {folder}/tsa.pem
certs = {folder}/ca.pem
signer_key = {folder}/tsa.key
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256
"""


def openssl(*args):
    subprocess.run([OPENSSL, *map(str, args)], check=True, capture_output=True)


@pytest.fixture(scope="module")
def service(tmp_path_factory):
    """OpenSSL's own time-stamp service with an authority of its own, on this machine."""
    folder = tmp_path_factory.mktemp("tsa")
    (folder / "openssl.cnf").write_text(CONFIG.format(folder=folder))
    (folder / "serial").write_text("01\n")
    config = ("-config", folder / "openssl.cnf")
    for name in ("ca", "tsa"):
        openssl("req", *config, "-new", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}",
                "-keyout", folder / f"{name}.key", "-out", folder / f"{name}.csr")  # fmt: skip
    openssl("x509", "-req", "-in", folder / "ca.csr", "-signkey", folder / "ca.key", "-extfile",
            folder / "openssl.cnf", "-extensions", "ca", "-out", folder / "ca.pem")  # fmt: skip
    openssl("x509", "-req", "-in", folder / "tsa.csr", "-CA", folder / "ca.pem", "-CAkey",
            folder / "ca.key", "-CAcreateserial", "-extfile", folder / "openssl.cnf",
            "-extensions", "stamp", "-out", folder / "tsa.pem")  # fmt: skip

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            query = folder / "query.tsq"
            query.write_bytes(self.rfile.read(int(self.headers["Content-Length"])))
            openssl("ts", "-reply", *config, "-section", "tsa", "-queryfile", query,
                    "-out", folder / "answer.tsr")  # fmt: skip
            self.send_response(200)
            self.end_headers()
            self.wfile.write((folder / "answer.tsr").read_bytes())

        def log_message(self, *args):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Answer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    chain = folder / "chain.pem"
    chain.write_text((folder / "tsa.pem").read_text() + (folder / "ca.pem").read_text())
    yield f"http://127.0.0.1:{server.server_port}/", chain
    server.shutdown()


@pytest.fixture
def stamped(copy, service):
    (copy / "witness" / "log.jsonl").unlink()
    for name in IDS:
        append(copy / "witness", entry("done", name, copy / "results_talker"), service[0])
    return copy


@needs_openssl
def test_stamps_of_a_real_service_are_verified(stamped, service, capsys):
    code, told = verified(stamped, capsys, "--witness-ca", str(service[1]))
    assert code == 0, told


@needs_openssl
def test_times_that_were_made_up_are_named_by_the_stamps(stamped, service, capsys):
    """The owner of the key dates a line back: chain and signatures are made anew, stamps cannot."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key((stamped / "witness" / "key.pem").read_bytes(), None)
    prev, anew = "0" * 64, []
    for line in map(json.loads, lines_of(stamped)):
        stamp = line.pop("stamp")
        line.pop("sig")
        line |= {"prev": prev, "time": line["time"].replace("20", "19", 1)}
        line["sig"] = key.sign(canonical_json(line).encode()).hex()
        row = canonical_json(line | {"stamp": stamp}).encode()
        prev = hashlib.sha256(row).hexdigest()
        anew.append(row + b"\n")
    rewrite(stamped, anew)
    assert verified(stamped, capsys)[0] == 0  # nothing else could tell
    code, told = verified(stamped, capsys, "--witness-ca", str(service[1]))
    assert code == 1 and "line 2: its time stamp does not hold (Mismatch between messages)" in told


@needs_openssl
def test_lines_without_a_stamp_and_stamps_of_others_are_named(stamped, service, capsys, tmp_path):
    append(stamped / "witness", entry("begin", "s03"))
    _, told = verified(stamped, capsys, "--witness-ca", str(service[1]))
    assert "line 5: has no time stamp" in told
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=ca", "-keyout",
            tmp_path / "other.key", "-out", tmp_path / "other.pem")  # fmt: skip
    chain = tmp_path / "chain.pem"
    own = service[1].with_name("tsa.pem").read_text()
    chain.write_text(own + (tmp_path / "other.pem").read_text())
    code, told = verified(stamped, capsys, "--witness-ca", str(chain))
    assert code == 1 and "line 2: its time stamp does not hold" in told


def test_a_service_that_gives_no_stamp_leaves_the_log_as_it_was(copy, monkeypatch):
    monkeypatch.setattr("time.sleep", lambda s: None)
    before = lines_of(copy)
    with pytest.raises(HfdError, match="witness_tsa: the time-stamp service gave no stamp"):
        append(copy / "witness", entry("begin", "s03"), "http://127.0.0.1:9/")
    assert lines_of(copy) == before


@needs_openssl
@pytest.mark.parametrize("stamp", ["", "é", base64.b64encode(b"0\x03\x02\x01").decode()])
def test_a_hostile_stamp_is_answered(stamp, copy, service, capsys):
    value = json.loads(lines_of(copy)[-1]) | {"stamp": stamp}
    rewrite(copy, [*lines_of(copy)[:-1], canonical_json(value).encode() + b"\n"])
    code, told = verified(copy, capsys, "--witness-ca", str(service[1]))
    assert code == 1 and "line 9: its time stamp does not hold" in told
