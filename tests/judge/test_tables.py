"""From records to rates: both denominators, outcomes, paired tests."""

import json
from pathlib import Path

import pytest

from hfd.data.manifest import Sample
from hfd.judge.outcome import outcome
from hfd.judge.run import Audit, recorded_error
from hfd.judge.sample import Record, absent
from hfd.judge.tables import coverage, metric_rows, write_csv
from hfd.judge.verdict import FAIL, Verdict, combined, merged, passed, unknown


def record(model="m", sample_id="s", status="ok", task="hesitation", truncated=False, **metrics):
    return Record(model, sample_id, task, status, "", {}, metrics, {}, {"truncated": truncated})


def lost(sample_id, task="hesitation", error=None, **facts):
    made = absent("m", sample_id, task, error)
    made.facts.update(asked=True, hesitates=task == "hesitation", **facts)
    return made


def rates(records, key):
    rows = metric_rows(Audit(["m"], {"m": records}, {}))
    return {
        row["denominator"]: (row["value"], row["n"])
        for row in rows
        if row["metric"] == key and row["statistic"] == "rate" and row["by"] == "all"
    }


def test_a_lost_sample_counts_against_the_model_in_the_strict_rate_only():
    records = [
        record(h1_gap_takeover=True, h11_responded=True),
        record(h1_gap_takeover=False, h11_responded=True),
        record(h1_gap_takeover=False, h11_responded=False, status="no_response"),
        lost("gone"),
        lost("broken", error="out of memory"),
        lost("other", task="qa"),
    ]
    assert rates(records, "h1_gap_takeover") == {
        "scored": (pytest.approx(1 / 3, abs=1e-6), 3),
        "strict": (pytest.approx(3 / 5), 5),
        "best": (pytest.approx(1 / 5), 5),
    }
    assert rates(records, "h11_responded") == {
        "scored": (pytest.approx(2 / 3, abs=1e-6), 3),
        "strict": (pytest.approx(2 / 6, abs=1e-6), 6),
        "best": (pytest.approx(5 / 6, abs=1e-6), 6),
    }
    assert coverage(records) == {
        "expected": 6, "ok": 2, "no_response": 1, "failed": 1, "refused": 0, "service_error": 0,
        "missing": 2, "ineligible": 0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        (record(h1_gap_takeover=True, h2_prefix_barge_in=True), "prefix_barge_in"),
        (record(h1_gap_takeover=True, h11_responded=True), "gap_takeover"),
        (record(h11_responded=False, h11_late=True), "late"),
        (record(h11_responded=False, h11_late=False), "no_response"),
        (record(h11_responded=True), "ok"),
        (record(), "ok"),
        (record(h1_gap_takeover=True, truncated=True), "truncated"),
        (absent("m", "s", "t", "why"), "failed"),
    ],
)
def test_the_worst_thing_decides_a_samples_outcome(made, expected):
    assert outcome(made) == expected


def test_refusals_and_service_errors_have_a_status_of_their_own_and_bounds():
    records = [record(h1_gap_takeover=False, h11_responded=True) for _ in range(6)]
    for status in ("refused", "refused", "service_error"):
        gone = absent("m", status, "hesitation", "why", status)
        gone.facts.update(asked=True, hesitates=True)
        assert outcome(gone) == status
        records.append(gone)
    counts = coverage(records)
    assert (counts["refused"], counts["service_error"], counts["failed"]) == (2, 1, 0)
    found = rates(records, "h1_gap_takeover")
    assert found["strict"] == (pytest.approx(3 / 9, abs=1e-6), 9)
    assert found["best"] == (0.0, 9) and found["scored"] == (0.0, 6)


@pytest.mark.parametrize(
    ("stored", "status", "reason"),
    [
        ({"error": "refused: no key", "lost_as": "refused"}, "refused", "refused: no key"),
        ({"error": "socket_lost", "lost_as": "service_error"}, "service_error", "socket_lost"),
        ({"error": "out of memory", "lost_as": "failed"}, "failed", "out of memory"),
        ({"error": "an older record"}, "failed", "an older record"),
        ({"error": "made up", "lost_as": "excused"}, "failed", "made up"),
        (["no object"], "failed", "['no object']"),
    ],
)
def test_the_recorded_error_says_how_a_sample_was_lost(stored, status, reason, tmp_path):
    (tmp_path / "s.json").write_text(json.dumps(stored))
    sample = Sample("s", "hesitation", Path("v.mp4"), None, 1.0, {}, 1)
    error, lost_as = recorded_error(tmp_path, sample)
    assert (error, lost_as) == (reason, status)


def test_a_model_that_lost_everything_still_has_its_strict_rate():
    found = rates([lost("a"), lost("b")], "h1_gap_takeover")
    assert found == {"strict": (1.0, 2), "best": (0.0, 2)}


def test_samples_without_a_question_enter_no_rate_of_answers():
    silent = absent("m", "s", "proactive", None)
    silent.facts.update(asked=False, hesitates=False)
    assert rates([silent, record(h11_responded=True)], "h11_responded")["strict"] == (1.0, 1)


def test_languages_and_tasks_have_rows_of_their_own():
    records = [
        record(sample_id="1", h1_gap_takeover=True),
        record(sample_id="2", h1_gap_takeover=False),
        record(sample_id="3", task="qa", h11_responded=True),
    ]
    for made, language in zip(records, ("zh", "en", "en"), strict=True):
        made.facts["language"] = language
    rows = metric_rows(Audit(["m"], {"m": records}, {}))
    found = {
        (row["by"], row["stratum"]): row["value"]
        for row in rows
        if row["metric"] == "h1_gap_takeover" and row["denominator"] == "scored"
    }
    assert found == {
        ("all", "all"): 0.5, ("language", "zh"): 1.0, ("language", "en"): 0.0,
        ("task", "hesitation"): 0.5,
    }  # fmt: skip


def test_no_evidence_is_never_a_pass():
    good, open_, bad = passed("fine"), unknown("who knows"), Verdict(FAIL, "wrong")
    assert combined([("a", good), ("b", open_)]).status == "not_evidenced"
    assert combined([("a", open_), ("b", bad)]).status == "fail"
    assert combined([]).status == "not_evidenced"
    assert merged(good, open_).status == "not_evidenced"
    assert merged(bad, good, bad).reason == "wrong; wrong"
    assert combined([("a", good), ("b", bad)]).reason == "1 of 2 samples, first b: wrong"


def test_csv_keeps_every_column_of_every_row(tmp_path):
    write_csv(tmp_path / "t.csv", [{"a": 1}, {"a": 2, "中": "x,y"}])
    assert (tmp_path / "t.csv").read_text(encoding="utf-8") == 'a,中\n1,\n2,"x,y"\n'
