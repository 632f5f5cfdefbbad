"""The whole data set and five models: what the workflow itself costs."""

import resource

import pytest

from tests.workflow.desk import counts

pytestmark = pytest.mark.realtime


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_a_dry_run_of_1024_samples_and_five_models_tells_what_is_missing(desk):
    """What it costs beside a trivial workflow of as many files: benchmarks/second_run.py."""
    desk.add_samples([f"s{number:04d}" for number in range(859)])
    desk.add_samples([f"h{number:03d}" for number in range(165)])
    for name in "abcde":
        desk.add_model(f"model_{name}", speak=False)
    output = desk.run("-n", "all")
    assert counts(output, "model_e") == (1024, 0, 0, 1024)
    assert "model_e: never run (1024): s0000, s0001" in output
    assert "and 1016 more" in output


def test_a_shard_costs_at_most_100_ms_for_each_sample_beyond_the_model(desk):
    desk.config = {"pilot_n": 1}
    desk.add_samples([f"s{number:02d}" for number in range(100)], pictures=16)
    desk.add_model("quiet", speak=False)
    desk.run("check_data")
    before = _cpu_s()
    desk.run("results_quiet")
    # 100 samples, and three starts: Snakemake, the model's preflight, the worker
    assert _cpu_s() - before <= 10 + 10
