"""Folders made by others may hold anything: the audit names what is wrong and never breaks."""

import random
import shutil

import pytest

import audit
from hfd.judge.rules.rule import Policy
from hfd.judge.sample import audit_sample
from tests.judge.forge import Forgery

ODD = (None, -1, 0, 1, "x", "", [], {}, [1], {"a": 1}, 1e308, 10**15, -(10**15), 0.5, True)


def change(value, choose):
    """Replace one value somewhere inside a JSON object by an odd one, or take it away."""
    while True:
        keys = list(value) if isinstance(value, dict) else list(range(len(value)))
        key = choose.choice(keys)
        inner = value[key]
        if isinstance(inner, dict | list) and inner and choose.random() < 0.7:
            value = inner
            continue
        if isinstance(value, dict) and choose.random() < 0.2:
            del value[key]
        else:
            value[key] = choose.choice(ODD)
        return


@pytest.mark.parametrize("target", ["lines", "result", "provenance"])
def test_odd_values_anywhere_are_findings_not_crashes(folder, target, tmp_path):
    choose = random.Random(target)
    for n in range(60):
        copy = tmp_path / "copies" / str(n) / folder.name
        shutil.copytree(folder, copy)
        forgery = Forgery(copy)
        part = getattr(forgery, target)
        if target == "lines":
            kept = {kind: next(x for x in part if x["kind"] == kind) for kind in
                    ("header", "input", "audio", "control", "text", "metric", "end")}  # fmt: skip
            change(choose.choice(list(kept.values())), choose)
            for seq, line in enumerate(part):
                line["seq"] = line.get("seq", seq)
            forgery.write_odd_trace()
        else:
            change(part, choose)
        forgery.write_documents()
        record = audit_sample(copy, "m", "qa", None, Policy("native_talker"))
        assert record.verdicts
        shutil.rmtree(copy)


@pytest.mark.parametrize("name", ["trace.jsonl.gz", "assistant_audio.wav", "result.json"])
@pytest.mark.parametrize(
    "data", [b"", b"\x00" * 50, b"RIFF", b"\x1f\x8b\x08", b"[" * 99_999, "文".encode()]
)
def test_garbage_in_a_file_is_named(folder, name, data):
    (folder / name).write_bytes(data)
    record = audit_sample(folder, "m", "qa", None, Policy())
    found = [f for v in record.verdicts.values() for f in v.evidence.get("findings", [])]
    assert any(finding["file"] == name for finding in found)
    assert record.status == "ineligible"


def test_one_broken_sample_and_one_broken_video_do_not_stop_the_audit(world, honest, tmp_path):
    root = tmp_path / "root"
    shutil.copytree(world.root / "data", root / "data")
    shutil.copytree(honest, root / "results/talker")
    (root / "results/talker/s02/trace.jsonl.gz").write_bytes(b"nothing")
    (root / "data/videos/s03.mp4").write_bytes(b"no video")
    (root / "data/adapters/s04.json").write_text("{")
    (root / "models.yaml").write_text("models: {talker: {module: x, voice_origin: native_talker}}")
    audit.main(
        ["--manifest", str(root / "data/manifest.jsonl"), "--root", str(root), "--results",
         str(root / "results"), "--models-file", str(root / "models.yaml"), "--out",
         str(root / "audit"), "--jobs", "1", "--no-players"]
    )  # fmt: skip
    table = (root / "audit/samples.csv").read_text(encoding="utf-8").splitlines()
    assert len(table) == len(world.samples) + 1
    assert "talker,s02,hesitation,ineligible" in "\n".join(table)
    rules = (root / "audit/rules.csv").read_text(encoding="utf-8")
    assert "A14,Completeness,fail" in rules
    page = (root / "audit/samples/s03.js").read_text(encoding="utf-8")
    assert "cannot be used" in page
