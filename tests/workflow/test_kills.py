"""kill -9 at random moments: nothing finished is lost, hardly anything is done twice."""

import random
import time
from contextlib import suppress

import psutil

from tests.workflow.desk import Desk, Started

NAMES = [f"s{n:02d}" for n in range(16)]


def _kill(run: Started, rng: random.Random) -> None:
    """Kill Snakemake, its workers, or both in either order."""
    main, workers = psutil.Process(run.process.pid), run.workers()
    victims = rng.choice([[main], workers, [main, *workers], [*workers, main]]) or [main]
    for victim in victims:
        with suppress(psutil.NoSuchProcess):  # it may have ended since
            victim.kill()


def _wait_for_begin(desk: Desk, more_than: int, run: Started) -> None:
    while desk.calls("loud").total() <= more_than and run.process.poll() is None:
        time.sleep(0.02)


def test_ten_kills_of_snakemake_and_the_worker_cost_at_most_the_sample_in_flight_each(desk):
    rng = random.Random(20)
    desk.add_samples(NAMES)
    desk.add_model("loud", pace_s=0.2)  # slow enough for ten kills
    kills = 0
    while kills < 10:
        run = desk.start("results_loud")
        _wait_for_begin(desk, desk.calls("loud").total(), run)
        time.sleep(rng.uniform(0, 0.6))
        if run.process.poll() is not None:
            break  # it was faster
        _kill(run, rng)
        kills += 1
        run.process.terminate()  # where only the worker was killed, Snakemake goes on
        run.end()
    desk.run("results_loud")
    assert desk.results("loud") == set(NAMES)
    assert kills == 10
    assert desk.calls("loud", "end").total() <= len(NAMES) + 1
    assert desk.calls("loud").total() <= len(NAMES) + kills
    assert "Nothing to be done" in desk.run("results_loud")


def test_the_lock_of_a_killed_run_is_cleared_and_that_of_a_living_one_is_not(desk):
    desk.add_samples(["a", "b", "c"])
    desk.add_model("loud")
    desk.faults("loud", hold=["a"])
    first = desk.start("results_loud")
    _wait_for_begin(desk, 0, first)
    refused = desk.run("results_loud", ok=False)
    assert f"another run is at work in this folder (process {first.process.pid}" in refused
    first.process.kill()
    first.end()
    desk.faults("loud")
    assert "the lock of a run that was killed has been cleared" in desk.run("results_loud")
    assert desk.results("loud") == {"a", "b", "c"}


def test_sigterm_drops_the_sample_in_flight_and_keeps_the_finished_ones(desk):
    desk.add_samples(NAMES[:6])
    desk.add_model("loud")
    desk.faults("loud", hold=["s01", "s03"])  # the second of each of two workers
    run = desk.start("results_loud", "--retries", "0")
    _wait_for_begin(desk, 3, run)
    for worker in run.workers():
        worker.terminate()
    desk.faults("loud")  # Snakemake may try again
    assert "stopped; what is finished stays" in run.end()
    assert not list((desk.path / "work" / "loud" / "store").glob(".part-*"))
    assert not list((desk.path / "work" / "loud" / "leases").glob("*.json"))
    desk.run("results_loud")
    assert set(desk.calls("loud", "end").values()) == {1}


def test_two_runs_for_different_samples_of_one_model_do_not_disturb_each_other(desk):
    desk.add_samples(NAMES[:6])
    desk.add_model("loud")
    first = desk.start("--", *(f"results/loud/{name}/result.json" for name in NAMES[:3]))
    second = desk.start("--", *(f"results/loud/{name}/result.json" for name in NAMES[3:6]))
    outputs = [run.end() for run in (first, second)]
    # Whichever lost the race for the lock says so; what was computed stays.
    assert 0 in (first.process.returncode, second.process.returncode), outputs
    desk.run("results_loud")
    assert desk.results("loud") == set(NAMES[:6])
    assert set(desk.calls("loud", "end").values()) == {1}
