"""Which samples one job computes."""

from hfd.jobs.plan import Job, Plan, make_plan, read_plan, save_plan


def jobs(count: int, hesitation: int = 0, pilot: int = 0, missing: set[str] | None = None):
    """`count` samples of one second; the last `hesitation` of them are hesitation samples."""
    made = []
    for number in range(count):
        name = f"s{number:03d}"
        group = "pilot" if number < pilot else "hes" if number >= count - hesitation else "other"
        work = 1.0 if missing is None or name in missing else 0.0
        made.append(Job(name, group, group == "pilot", work))
    return made


def everything(of):
    return [job.sample_id for job in of]


def test_the_first_plan_depends_on_the_manifest_alone_and_keeps_groups_apart():
    work = jobs(100, hesitation=10, pilot=2)
    plan = make_plan(Plan(), work, everything(work), target_s=20)
    assert plan == make_plan(Plan(), work, reversed(everything(work)), target_s=20)
    groups = {job.sample_id: job.group for job in work}
    for members in plan.shards.values():
        assert len({groups[member] for member in members}) == 1
        assert len(members) <= 20
    assert sorted(plan.owners()) == everything(work)


def test_long_samples_make_small_shards():
    work = [Job(f"s{n}", "other", False, 30.0) for n in range(6)]
    plan = make_plan(Plan(), work, everything(work), target_s=60)
    assert [len(members) for members in plan.shards.values()] == [2, 2, 2]


def test_seven_missing_samples_of_seven_shards_become_one_job():
    work = jobs(70)
    first = make_plan(Plan(), work, everything(work), target_s=10)
    missing = {f"s{n * 10:03d}" for n in range(7)}
    second = make_plan(first, jobs(70, missing=missing), missing, target_s=10)
    assert len({second.owners()[sample] for sample in missing}) == 1


def test_a_finished_shard_is_left_alone_and_no_name_is_used_twice():
    work = jobs(40)
    first = make_plan(Plan(), work, everything(work), target_s=10)
    again = make_plan(first, jobs(40, missing={"s003"}), ["s003"], target_s=10)
    for sample in ("s010", "s039"):
        assert again.owners()[sample] == first.owners()[sample]
    assert again.owners()["s003"] not in first.shards
    assert make_plan(again, jobs(40, missing=set()), [], target_s=10) is again


def test_a_shard_without_work_asks_for_no_gpu():
    work = jobs(5)
    first = make_plan(Plan(), work, everything(work), target_s=10)
    mended = make_plan(first, jobs(5, missing=set()), ["s001"], target_s=10)
    assert mended.owners()["s001"].endswith("store")


def test_only_what_has_to_be_done_changes_its_shard():
    work = jobs(40)
    first = make_plan(Plan(), work, everything(work), target_s=10)
    owners = make_plan(first, jobs(40, missing={"s003"}), ["s003"], target_s=10).owners()
    assert {name for name in owners if owners[name] != first.owners()[name]} == {"s003"}


def test_a_sample_that_left_the_manifest_makes_no_other_start_again():
    work = jobs(5)
    first = make_plan(Plan(), work, everything(work), target_s=10)
    rest = [Job(job.sample_id, job.group, False, 0.0) for job in work[1:]]
    assert make_plan(first, rest, [], target_s=10) is first


def test_saving_keeps_what_another_run_has_planned(tmp_path):
    path = tmp_path / "plan.json"
    save_plan(path, Plan(1, {"g1-a-0000": ["x"]}))
    save_plan(path, Plan(1, {"g1-b-0000": ["y"]}))
    assert read_plan(path).owners() == {"x": "g1-a-0000", "y": "g1-b-0000"}


def test_a_finished_sample_never_opens_a_shard():
    works = [10.0, 0.0, 0.0, 10.0, 0.0]
    work = [Job(f"s{n}", "other", False, seconds) for n, seconds in enumerate(works)]
    plan = make_plan(Plan(), work, everything(work), target_s=10)
    assert list(plan.shards.values()) == [["s0", "s1", "s2"], ["s3", "s4"]]
    assert not any(name.endswith("store") for name in plan.shards)
    first = [Job(job.sample_id, "other", False, 0.0) for job in work[:2]] + work[3:4]
    plan = make_plan(Plan(), first, everything(first), target_s=10)
    assert list(plan.shards.values()) == [["s0", "s1", "s3"]]  # what is ready needs no job more
