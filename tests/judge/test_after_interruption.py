"""What becomes of an answer that the user interrupts: anew, resumed, silence, or no stop at all."""

import pytest

from hfd.judge.after_interruption import after_interruption
from hfd.judge.delivered import Turn
from hfd.judge.intervals import Interval
from hfd.judge.metrics import Question
from hfd.judge.reference import read_reference
from hfd.judge.rules.rule import Policy
from hfd.judge.sample import audit_sample
from tests.judge.world import run_model

QUESTION = Question(6.0, Interval(0.5, 2.0), Interval(4.0, 6.0))
OLD = "The man in the red coat is walking a small dog along the beach"


def turn(text, *played):
    return Turn(text, [Interval(*part) for part in played], False)


@pytest.mark.parametrize(
    ("what", "turns"),
    [
        (None, [turn(OLD, (2.5, 3.9)), turn("Two people.", (6.5, 7.5))]),
        ("silent", [turn(OLD, (2.5, 4.6))]),
        ("goes_on", [turn(OLD, (2.5, 4.6), (4.7, 6.4))]),
        (None, [turn(OLD + " Two people.", (2.5, 4.6), (6.5, 7.0))]),
        ("anew", [turn(OLD, (2.5, 4.6)), turn("Two people in red are there.", (6.5, 7.5))]),
        ("resumes", [turn(OLD, (2.5, 4.6)), turn("So, a small dog along the beach.", (6.5, 7.5))]),
        ("resumes", [turn("他正在海边遛一只小狗", (2.5, 4.6)), turn("遛一只小狗", (6.5, 7.5))]),
        ("anew", [turn("他正在海边遛一只小狗", (2.5, 4.6)), turn("一共有两个人", (6.5, 7.5))]),
        ("silent", [turn(OLD, (2.5, 4.6)), turn("Mm.", (5.0, 5.4))]),
    ],
)
def test_an_interrupted_answer(what, turns):
    assert after_interruption(turns, QUESTION) == what


def test_nothing_is_said_of_samples_without_a_correction():
    assert after_interruption([turn(OLD, (2.5, 4.6))], Question(6.0)) is None
    assert after_interruption([turn(OLD, (2.5, 4.6))], None) is None


def test_a_model_that_answers_early_and_is_interrupted_answers_anew(world):
    results = run_model(world, "hasty-report", silence_s=0.3)
    found = []
    for sample in world.samples:
        reference = read_reference(sample, None)
        record = audit_sample(
            results / sample.sample_id, "hasty", sample.task, reference, Policy(None)
        )
        found.append(record.facts["after_interruption"])
        assert (found[-1] is None) == (record.metrics.get("h8_yield_s") is None)
    # Its words are drawn from one passage: now and then two answers are of the same sentence.
    assert set(found) <= {None, "anew", "resumes"} and found.count("anew") > 2
