"""Intervals and tests: known answers, planted models, and coverage by simulation."""

import numpy as np
import pytest
from scipy import stats as scipy_stats

from hfd.judge import stats
from hfd.judge.comparisons import paired_rows
from hfd.judge.sample import Record, absent

N = 165


def own(n):
    return [str(k) for k in range(n)]


def hesitation(model, k, takes_over, latency=1.0, **facts):
    asked = {"asked": True, "hesitates": True, "cluster": facts.pop("cluster", str(k))}
    values = {"h1_gap_takeover": takes_over, "h5_hold_failure": takes_over}
    values |= {"h11_responded": latency is not None, "h9_response_s": latency}
    status = "ok" if latency is not None else "no_response"
    return Record(model, str(k), "hesitation", status, "", {}, values, {}, asked | facts)


def compare(first, second, **more):
    rows = paired_rows({"a": first, "b": second}, **more)
    return {(row["metric"], row["denominator"]): row for row in rows}


def planted(points, n=N, seed=0, base=0.3):
    """Two models of which the second takes over in `points` more samples of a hundred."""
    draw = np.random.default_rng(seed).random(n)
    first = [hesitation("a", k, bool(draw[k] < base)) for k in range(n)]
    worse = np.random.default_rng(seed + 1).permutation(n)[: round(n * points / 100)]
    flipped = [k for k in worse if draw[k] >= base]
    second = [hesitation("b", k, bool(draw[k] < base) or k in flipped) for k in range(n)]
    return first, second, len(flipped) / n


def test_the_same_outputs_differ_in_nothing():
    first, second, _ = planted(0)
    for row in compare(first, second).values():
        assert row["difference"] == 0 and row["p"] == 1 and row["p_holm"] == 1


@pytest.mark.parametrize("points, found", [(5, False), (15, True), (30, True)])
def test_a_worse_model_is_found_where_so_many_samples_can_find_it(points, found):
    """10 % of the pairs differ by chance in each direction, then `points` more in one of them."""
    base = [k % 10 < 3 for k in range(N)]
    noisy = [value ^ (k % 20 in (1, 12, 5, 9)) for k, value in enumerate(base)]
    good = [k for k in range(N) if not base[k] and not noisy[k]]
    worse = set(np.random.default_rng(0).permutation(good)[: round(N * points / 100)])
    first = [hesitation("a", k, base[k]) for k in range(N)]
    second = [hesitation("b", k, noisy[k] or k in worse) for k in range(N)]
    row = compare(first, second)["h1_gap_takeover", "strict"]
    assert row["family"] == "primary" and row["n"] == N
    assert (row["p_holm"] < 0.05) is found
    assert (row["high"] < 0) is found


def test_one_way_differences_have_the_p_of_the_exact_mcnemar_test():
    first, second, share = planted(15)
    row = compare(first, second)["h1_gap_takeover", "scored"]
    differing = round(share * N)
    assert row["difference"] == pytest.approx(-share)
    assert row["p"] == pytest.approx(2 * 0.5**differing)
    assert row["discordant"] == pytest.approx(share)


def test_a_model_that_keeps_silent_on_the_hard_half_is_not_the_quicker_one():
    """Its answers are quick where it answers: dropping the silent pairs would make it win."""
    first = [hesitation("a", k, False, latency=1.0 + (k % 2)) for k in range(N)]
    second = [hesitation("b", k, False, latency=0.8 if k % 2 == 0 else None) for k in range(N)]
    rows = compare(first, second)
    mean, rank = rows["h9_response_s", "strict"], rows["h9_response_s:rank", "strict"]
    assert mean["difference"] < -3 and mean["p_holm"] < 0.01  # 2 s against the horizon of 10 s
    assert abs(rank["difference"]) < 0.01  # quicker in one half, silent in the other
    answered = rows["h11_responded", "strict"]
    assert answered["difference"] == pytest.approx(82 / N) and answered["p_holm"] < 0.01


def test_a_lost_sample_counts_against_its_model_in_the_strict_comparison_only():
    first = [hesitation("a", k, False) for k in range(20)]
    second = [hesitation("b", k, False) for k in range(10)]
    for k in range(10, 20):
        gone = absent("b", str(k), "hesitation", "out of memory")
        gone.facts.update(asked=True, hesitates=True, cluster=str(k))
        second.append(gone)
    rows = compare(first, second)
    assert rows["h1_gap_takeover", "scored"]["n"] == 10
    assert rows["h1_gap_takeover", "strict"]["difference"] == -0.5
    assert rows["h11_responded", "strict"]["difference"] == 0.5


def test_lost_samples_bound_the_difference_from_both_sides():
    """Ten of twenty answers of the second model never came: they may all have been good or bad."""
    first = [hesitation("a", k, k < 5) for k in range(20)]
    second = [hesitation("b", k, False) for k in range(10)]
    for k in range(10, 20):
        gone = absent("b", str(k), "hesitation", "the service said no", "refused")
        gone.facts.update(asked=True, hesitates=True, cluster=str(k))
        second.append(gone)
    row = compare(first, second)["h1_gap_takeover", "strict"]
    assert row["difference"] == pytest.approx(-0.25) == row["lost_low"]
    assert row["lost_high"] == pytest.approx(0.25)
    whole = compare(first, first)["h1_gap_takeover", "strict"]
    assert (whole["lost_low"], whole["lost_high"]) == (None, None)


def test_a_difference_below_a_models_own_noise_is_grey():
    first, second, share = planted(15)
    floors = {"a": {"h1_gap_takeover": share + 0.01}}
    assert compare(first, second, floors=floors)["h1_gap_takeover", "strict"]["grey"]
    assert not compare(first, second)["h1_gap_takeover", "strict"]["grey"]


def test_samples_of_one_speaker_are_no_independent_evidence():
    """Ten speakers with ten samples each: the same rows are worth ten, not a hundred."""
    noise = np.random.default_rng(5).choice([-1.0, 1.0], 10, p=[0.2, 0.8]).repeat(10)
    speakers = [str(k // 10) for k in range(100)]
    apart, together = stats.mean(noise, own(100)), stats.mean(noise, speakers)
    assert together.high - together.low > 2 * (apart.high - apart.low)
    assert stats.sign_flip(noise, own(100)) < 1e-3 < 0.01 < stats.sign_flip(noise, speakers)
    alone = ["one speaker"] * 100
    for found in (stats.mean(noise, alone), stats.quantile(noise, 0.5, alone)):
        assert (found.low, found.high) == (None, None)


def test_holm_and_wilson_give_the_published_values():
    assert stats.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    found = stats.wilson(3, 10)  # Wilson 1927, as every textbook prints it
    assert (found.low, found.high) == pytest.approx((0.1078, 0.6032), abs=5e-4)


def test_165_pairs_of_which_30_percent_differ_find_about_12_points():
    assert stats.detectable_difference(N, 0.3) == pytest.approx(0.119, abs=0.003)
    assert stats.detectable_difference(10, 0.1) is None


def test_the_detectable_difference_is_found_four_times_in_five():
    difference = stats.detectable_difference(N, 0.3)
    draws = np.random.default_rng(11)
    sides = [0.15 + difference / 2, 0.15 - difference / 2, 0.7]
    counts = draws.multinomial(N, sides, size=2000)
    p = scipy_stats.binom.cdf(counts[:, :2].min(axis=1), counts[:, :2].sum(axis=1), 0.5) * 2
    assert np.mean(p < 0.05) == pytest.approx(0.8, abs=0.05)  # the exact test is a little shy


@pytest.mark.parametrize("per_cluster", [1, 5])
def test_intervals_cover_the_truth_as_often_as_they_say(per_cluster, monkeypatch):
    """2000 draws of 165 paired differences around a true difference of 10 points."""
    monkeypatch.setattr(stats, "DRAWS", 1000)
    random = np.random.default_rng(1)
    clusters = [str(k // per_cluster) for k in range(N)]
    groups, covered = len(set(clusters)), 0
    for _ in range(2000):
        effect = random.choice([-1.0, 0.0, 1.0], groups, p=[0.1, 0.7, 0.2])
        drawn = effect.repeat(per_cluster)[:N]
        found = stats.mean(drawn, clusters)
        covered += found.low <= 0.1 <= found.high
    assert 0.93 <= covered / 2000 <= 0.97


@pytest.mark.parametrize("q", [0.0, 0.5, 0.9, 1.0])
def test_quantiles_of_drawn_clusters_are_numpys_own(q):
    """Against the plain way: put the drawn clusters' values together and ask numpy."""
    random = np.random.default_rng(3)
    clusters = [str(k) for k in random.integers(0, 12, 90)]
    values = np.round(random.normal(size=90), 1)  # with ties
    members = stats._members(clusters)
    drawn = random.integers(0, len(members), (200, len(members)))
    plain = [np.quantile(values[np.concatenate([members[k] for k in row])], q) for row in drawn]
    assert stats._drawn_quantiles(values, members, drawn, q) == pytest.approx(plain, abs=1e-12)
