"""The matrix of docs/audit.md: every planted cheat is caught by its rule, no honest run fails."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import verify_results
from hfd.judge.folder import foreign_folders
from hfd.judge.probe import read_probes
from hfd.judge.reference import read_reference
from hfd.judge.rules import RULES, judge_model
from hfd.judge.rules.a14_completeness import duplicates
from hfd.judge.rules.rule import Policy, SetCase
from hfd.judge.run import recorded_error
from hfd.judge.sample import absent, audit_sample
from hfd.judge.transcript import Transcripts
from hfd.judge.verdict import FAIL
from tests.judge.cheats import CHEATS, SPOKEN_CHEATS
from tests.judge.cheats.story import deliver_as
from tests.judge.forge import Forgery
from tests.judge.heard import heard
from tests.judge.world import Mute, Talker, World, run_model

DOCS = Path(__file__).resolve().parents[2] / "docs" / "audit.md"
POLICY = Policy("native_talker", "talker", "test")
NO_PROBES = read_probes(None, "m")
_audited: dict = {}
_references: dict = {}


def reference_of(sample):
    if sample.video not in _references:
        _references[sample.video] = read_reference(sample, None)
    return _references[sample.video]


def verdicts_of(results, world, policy=POLICY, store=None):
    """All verdicts on a model's folder; folders whose bytes were seen before are not read again."""
    records = []
    for sample in world.samples:
        folder = results / sample.sample_id
        if not folder.is_dir():
            records.append(absent("m", sample.sample_id, sample.task, None))
            continue
        key = (
            folder.name,
            policy,
            store,
            reference_of(sample).video_sha256,
            *(hashlib.sha256(p.read_bytes()).digest() for p in sorted(folder.glob("*.*"))),
        )
        if key not in _audited:
            mine = store / sample.sample_id if store else None
            _audited[key] = audit_sample(
                folder,
                "m",
                sample.task,
                reference_of(sample),
                policy,
                mine,
                Transcripts(heard(folder)),
            )
        error, _ = recorded_error(results.parent / "errors", sample)
        records.append(replace(_audited[key], facts=_audited[key].facts | {"error": error}))
    extra = foreign_folders(results, {sample.sample_id for sample in world.samples})
    return judge_model(SetCase(records, extra, duplicates(records).get("m"), NO_PROBES))


def failures(verdicts):
    return {code for code, verdict in verdicts.items() if verdict.status == FAIL}


@pytest.fixture
def copied(honest, tmp_path):
    target = tmp_path / "results"
    shutil.copytree(honest, target)
    return target


@pytest.mark.parametrize("cheat", [c for c in CHEATS if c.caught_by], ids=lambda c: c.name)
def test_a_cheat_is_caught_by_its_rule_and_by_no_other(cheat, copied, world):
    cheat.apply(copied)
    verdicts = verdicts_of(copied, world)
    caught = failures(verdicts)
    assert cheat.caught_by in caught, verdicts[cheat.caught_by]
    assert caught <= {cheat.caught_by, *cheat.also}, {c: verdicts[c].reason for c in caught}


@pytest.mark.parametrize("cheat", [c for c in CHEATS if not c.caught_by], ids=lambda c: c.name)
def test_what_a_folder_cannot_prove_is_no_pass_and_the_table_says_what_settles_it(
    cheat, copied, world, honest
):
    cheat.apply(copied)
    verdicts = verdicts_of(copied, world)
    assert failures(verdicts) == set()
    assert cheat.settled_by
    if cheat.named_by:
        assert verdicts[cheat.named_by].status == "not_evidenced"
        assert verdicts[cheat.named_by].evidence["samples"]
    elif "store" in cheat.settled_by:
        assert failures(verdicts_of(copied, world, store=honest)) == {"A16"}
    else:
        assert verdicts["A7"].status == "not_evidenced"


@pytest.mark.parametrize(
    ("name", "model", "settings"),
    [
        ("honest-80ms", Talker, {}),
        ("honest-480ms", Talker, {"unit": 7680, "word_units": 1}),
        ("honest-1s", Talker, {"unit": 16000, "word_units": 1}),
        ("honest-silent", Mute, {}),
        ("honest-hasty", Talker, {"silence_s": 0.3}),
    ],
)
def test_no_honest_run_fails_a_rule(name, model, settings, world):
    results = run_model(world, name, model, **settings)
    verdicts = verdicts_of(results, world, replace(POLICY, model=name))
    assert failures(verdicts) == set(), {c: verdicts[c].reason for c in failures(verdicts)}


def test_an_old_hesitation_video_is_refused_by_its_hash(copied, world):
    digest = reference_of(world.samples[2]).video_sha256
    verdicts = verdicts_of(copied, world, replace(POLICY, deny_sha256=frozenset([digest])))
    assert failures(verdicts) == {"A1"} and "deny list" in verdicts["A1"].reason


def test_one_model_s_results_delivered_as_another_model_s_are_found(copied, world):
    sample = world.samples[1]
    for name in ("one", "other"):
        shutil.copytree(copied / sample.sample_id, copied.parent / name / sample.sample_id)
    records = [
        audit_sample(copied.parent / name / sample.sample_id, name, "qa", None, POLICY)
        for name in ("one", "other")
    ]
    found = duplicates(records)
    assert set(found) == {"one", "other"} and "one/s01 = other/s01" in found["one"].reason


def test_a_dropped_sample_is_found_by_the_manifest_and_not_evidenced_without_one(
    copied, world, capsys
):
    shutil.rmtree(copied / world.samples[3].sample_id)
    manifest = ["--manifest", str(world.root / "data/manifest.jsonl"), "--root", str(world.root)]
    assert verify_results.main([str(copied), *manifest]) == 1
    assert "A14  fail          Completeness: 1 missing of 8, first s03" in capsys.readouterr().out
    assert verify_results.main([str(copied)]) == 0
    assert "A14  not_evidenced Completeness: no manifest says which" in capsys.readouterr().out


@pytest.mark.parametrize("manifest", [True, False])
def test_attempts_are_shown_with_and_without_a_manifest(copied, world, manifest, capsys):
    forgery = Forgery(copied / world.samples[3].sample_id)
    forgery.provenance["attempt"] = 7
    forgery.write_documents()
    more = ["--manifest", str(world.root / "data/manifest.jsonl"), "--root", str(world.root)]
    assert verify_results.main([str(copied), *more * manifest]) == 0
    assert "1 needed more than one attempt, s03 most (7)" in capsys.readouterr().out


def twins(copied, world, monkeypatch):
    """Two samples of one compiled file, one delivered in the place of the other."""
    first, second = world.samples[3:5]
    monkeypatch.setitem(_references, second.video, reference_of(first))
    deliver_as(copied / first.sample_id, copied / second.sample_id)
    return first.sample_id, second.sample_id


def test_a_model_that_answers_one_file_twice_alike_is_honest(world):
    first, second = world.samples[3], replace(world.samples[3], sample_id="again")
    twice = World(world.root, [first, second])
    results = run_model(twice, "twice", seed=7)
    verdicts = verdicts_of(results, twice, replace(POLICY, model="twice"))
    assert verdicts["A14"].status == "pass" and failures(verdicts) == set()


def test_a_result_delivered_twice_is_found_from_outside(copied, world, monkeypatch, capsys):
    names = twins(copied, world, monkeypatch)
    assert verify_results.main([str(copied)]) == 1
    told = capsys.readouterr().out
    assert f"one result more than once: {' = '.join(names)} (every time the same" in told


def test_all_that_breaks_a_rule_is_told(copied, world):
    gone, first, second = (world.samples[n].sample_id for n in (0, 3, 4))
    deliver_as(copied / first, copied / second)
    shutil.rmtree(copied / gone)
    shutil.copytree(copied / first, copied / "foreign")
    verdict = verdicts_of(copied, world)["A14"]
    for told in ("1 missing of 8", "not in the manifest, first foreign", f"m/{first} = m/{second}"):
        assert told in verdict.reason
    assert {gone, "foreign", first, second} <= set(verdict.evidence["samples"])


def rule_table() -> str:
    """What each rule asks for, as Markdown."""
    rows = [f"| {r.code} {r.title.lower()} | {r.passes_when} |" for r in RULES]
    return "\n".join(["| rule | passes when |", "|---|---|", *rows])


def table() -> str:
    """The cheat × rule matrix as Markdown."""
    rows = [
        "| cheat | caught by | may fail with it | what else would settle it |",
        "|---|---|---|---|",
    ]
    for cheat in (*CHEATS, *SPOKEN_CHEATS):
        caught = f"**{cheat.caught_by}**" if cheat.caught_by else "not evidenced"
        rows.append(f"| {cheat.name} | {caught} | {', '.join(cheat.also)} | {cheat.settled_by} |")
    return "\n".join(rows)


TABLES = {"cheats": table, "rules": rule_table}


@pytest.mark.parametrize("name", TABLES)
def test_the_tables_in_the_documentation_are_those_of_the_code(name):
    text = DOCS.read_text(encoding="utf-8")
    begin, end = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
    assert text.split(begin)[1].split(end)[0] == TABLES[name](), (
        "run PYTHONPATH=scripts python -m tests.judge.write_table"
    )
