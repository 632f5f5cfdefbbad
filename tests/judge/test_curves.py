"""Curves of the report: the histogram of lags and the growth of the context."""

from hfd.judge.curves import by_second, context_curve, lag_counts, spread
from hfd.judge.trace import Trace


def told(*tokens):
    lines = [{"kind": "metric", "t": t, "values": {"context_tokens": n}} for t, n in tokens]
    return Trace([*lines, {"kind": "metric", "t": 99.0, "values": {"compute_s": 1.0}}])


def test_every_unit_falls_into_the_bin_of_its_lag():
    lags = (-0.0004, 0.0005, 0.0011, 0.03, 0.0499, 2.0)
    trace = Trace([{"kind": "input", "due": 1.0, "t": 1.0 + lag} for lag in lags])
    assert lag_counts(trace) == [2, 1, 0, 0, 0, 2, 0, 0, 0, 0, 1]


def test_the_context_is_told_where_it_changes_and_a_fall_is_seen():
    curve = context_curve(told((0.0, 5), (0.4, 5), (1.2, 9), (2.5, 4)))
    assert curve == [(0.0, 5), (1.2, 9), (2.5, 4)]
    assert by_second(curve) == [5, 5, 9, 4]
    assert context_curve(told()) == [] and by_second([]) == []


def test_a_sample_that_has_ended_counts_with_its_last_context():
    found = spread([[1, 2, 3], [3, 6]])
    assert found == {"least": [1, 2, 3], "median": [2, 4, 4.5], "most": [3, 6, 6]}
    assert spread([]) == {"least": [], "median": [], "most": []}
