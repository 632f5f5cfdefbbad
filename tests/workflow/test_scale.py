"""The whole data set and five models: what the workflow itself costs."""

import resource

import pytest

from tests.workflow.desk import counts

pytestmark = pytest.mark.realtime


def _cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_a_dry_run_of_1024_samples_and_five_models_takes_at_most_fifteen_seconds(desk):
    desk.add_samples([f"s{number:04d}" for number in range(859)])
    desk.add_samples([f"h{number:03d}" for number in range(165)])
    for name in "abcde":
        desk.add_model(f"model_{name}", speak=False)
    before = _cpu_s()
    output = desk.run("-n", "all")
    assert _cpu_s() - before <= 15  # processor seconds: the machine may be busy with other things
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
    assert _cpu_s() - before <= 10 + 5  # 100 samples, and two starts of Snakemake and the worker
