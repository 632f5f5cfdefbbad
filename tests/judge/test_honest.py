"""A few of the honest runs of false_alarms.py: none fails a rule (docs/audit.md has them all)."""

import pytest

from hfd.judge.reference import read_reference
from hfd.judge.verdict import FAIL
from tests.judge.false_alarms import audited
from tests.judge.honest import Manner, run_honest

MANNERS = {
    "20 ms units, odd last chunks": Manner(unit=320, chunk=2400, hop=2400, sentences=(2, 3)),
    "one answer to everything": Manner(unit=640, same=True, ahead=True, pieces="sentence"),
    "comfort noise": Manner(unit=7680, noise=True, compute_s=0.0, chunk=480, hop=480),
    "hasty, long and interrupted": Manner(silence_s=0.25, sentences=(4, 5), pieces="characters"),
}


@pytest.mark.parametrize("name", MANNERS)
def test_no_rule_fails_an_honest_set(name, world):
    results = run_honest(world, f"honest {name}", MANNERS[name])
    references = {sample.sample_id: read_reference(sample, None) for sample in world.samples}
    _, verdicts = audited(world, results, references)
    assert {c: v.reason for c, v in verdicts.items() if v.status == FAIL} == {}
