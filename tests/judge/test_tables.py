"""From records to rates: both denominators, outcomes, paired tests."""

import pytest

from hfd.judge.outcome import outcome
from hfd.judge.run import Audit
from hfd.judge.sample import Record, absent
from hfd.judge.tables import coverage, metric_rows, paired_rows, write_csv
from hfd.judge.verdict import FAIL, Verdict, combined, merged, passed, unknown


def record(model="m", sample_id="s", status="ok", task="hesitation", truncated=False, **metrics):
    return Record(model, sample_id, task, status, "", {}, metrics, {}, {"truncated": truncated})


def rates(records, key):
    rows = metric_rows(Audit(["m"], {"m": records}, {}))
    return {
        row["denominator"]: (row["value"], row["n"])
        for row in rows
        if row["metric"] == key and row["statistic"] == "rate"
    }


def test_a_lost_sample_counts_against_the_model_in_the_strict_rate_only():
    records = [
        record(h1_gap_takeover=True, h11_responded=True),
        record(h1_gap_takeover=False, h11_responded=True),
        record(h1_gap_takeover=False, h11_responded=False, status="no_response"),
        absent("m", "gone", "hesitation", None),
        absent("m", "broken", "hesitation", "out of memory"),
        absent("m", "other", "qa", None),
    ]
    assert rates(records, "h1_gap_takeover") == {
        "scored": (pytest.approx(1 / 3, abs=1e-6), 3),
        "strict": (pytest.approx(3 / 5), 5),
    }
    assert rates(records, "h11_responded") == {
        "scored": (pytest.approx(2 / 3, abs=1e-6), 3),
        "strict": (pytest.approx(2 / 6, abs=1e-6), 6),
    }
    assert coverage(records) == {
        "expected": 6, "ok": 2, "no_response": 1, "failed": 1, "missing": 2, "ineligible": 0,
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


def test_models_are_compared_on_the_samples_that_both_have():
    first = [record(h1_gap_takeover=True, h9_response_s=1.0 + n / 9) for n in range(9)]
    second = [record("n", h1_gap_takeover=False, h9_response_s=2.0 + n / 7) for n in range(9)]
    second[8] = absent("n", "s", "hesitation", None)
    rows = paired_rows(Audit(["m", "n"], {"m": first, "n": second}, {}))
    assert {(row["metric"], row["test"], row["n"]) for row in rows} == {
        ("h1_gap_takeover", "McNemar", 8),
        ("h9_response_s", "Wilcoxon", 8),
    }
    assert all(row["p"] < 0.02 for row in rows)


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
