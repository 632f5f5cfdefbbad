"""A6 over a set: words of the correction said too early, told from words that are said often."""

import numpy as np
import pytest

from hfd.judge.probe import read_probes
from hfd.judge.rules import a06_prefix_invariance as a06
from hfd.judge.rules.rule import SetCase
from hfd.judge.sample import Record
from hfd.judge.verdict import passed, unknown

NOUNS = [f"{first}{second}" for first in ("red", "old", "tin", "wet") for second in (
    "bicycle", "kitchen", "picture", "sandwich", "umbrella", "waterfall", "xylophone", "window",
    "blanket", "candle", "donkey", "engine")]  # fmt: skip


def record(number, said, asked):
    """A sample in which `said` was written before a correction with the words `asked`."""
    early = set(said)
    told = {"early": len(early), "asked": sorted(asked)}
    foreseen = sorted(early & set(asked))
    verdict = unknown("early", foreseen=foreseen, **told) if foreseen else passed("none", **told)
    facts = {"text": " ".join(said), "clock": "virtual"}
    return Record("m", f"s{number}", "hesitation", "ok", "", {"A6": verdict}, {}, {}, facts)


def of_model(records):
    return a06.of_model(SetCase(records, (), None, read_probes(None, "m")), passed("none"))


@pytest.mark.parametrize("words", [2, 8, 14])
def test_a_model_that_always_knows_the_correction_fails_however_much_it_says(words):
    random = np.random.default_rng(0)
    records = []
    for number in range(40):
        asked = set(random.choice(NOUNS, 3, replace=False))
        said = [*random.permutation(sorted(set(NOUNS) - asked))[: words - 1], min(asked)]
        records.append(record(number, said, asked))
    assert of_model(records).status == "fail"


@pytest.mark.parametrize("words", [2, 8, 30])
def test_a_model_that_talks_at_random_does_not(words):
    random = np.random.default_rng(1)
    for _ in range(20):
        records = [
            record(n, random.choice(NOUNS, words, replace=False), random.choice(NOUNS, 3))
            for n in range(40)
        ]
        assert of_model(records).status == "not_evidenced"


def test_one_answer_to_everything_and_one_correction_for_all_tell_nothing():
    said = [*NOUNS[:20], "people"]
    records = [record(n, said, {"people", "many"}) for n in range(12)]
    records += [record(n, said, set()) for n in range(12, 16)]
    assert of_model(records).status == "not_evidenced"
    silent = [record(n, ["people"], {"people"}) for n in range(12)]
    silent += [record(n, ["something"], set()) for n in range(12, 16)]
    assert of_model(silent).status == "fail", "it says the word only where it will be asked for"
