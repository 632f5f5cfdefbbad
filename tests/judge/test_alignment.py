"""Words in time, heard by the real recogniser in a synthesised voice: honest runs and cheats."""

import shutil

import pytest

from hfd.judge.alignment import aligned
from hfd.judge.recogniser import bundled_model, recogniser
from hfd.judge.reference import read_reference
from hfd.judge.rules.a15_transcript import early_voices
from hfd.judge.trace import Trace
from hfd.judge.verdict import passed
from tests.judge.cheats import SPOKEN_CHEATS
from tests.judge.false_alarms import audited
from tests.judge.honest import Manner, run_honest
from tests.judge.test_cheats import failures

HONEST = {
    "words": Manner(pieces="words", sentences=(2, 3)),
    "ahead": Manner(pieces="words", sentences=(2, 3), ahead=True, unit=16_000),
}


@pytest.fixture(scope="module")
def listen():
    return recogniser(bundled_model(), "en")


@pytest.fixture(scope="module")
def references(world):
    return {sample.sample_id: read_reference(sample, None) for sample in world.samples}


@pytest.fixture(scope="module")
def runs(world):
    return {name: run_honest(world, f"spoken-{name}", manner) for name, manner in HONEST.items()}


@pytest.mark.parametrize("name", HONEST)
def test_an_honest_voice_comes_after_its_text(world, runs, references, listen, name):
    records, verdicts = audited(world, runs[name], references, listen)
    assert failures(verdicts) == set(), {c: verdicts[c].reason for c in failures(verdicts)}
    assert not [r.sample_id for r in records if "early" in r.verdicts["A15"].evidence]


@pytest.mark.parametrize("cheat", SPOKEN_CHEATS, ids=lambda cheat: cheat.name)
def test_sound_that_overtakes_its_text_is_caught(world, runs, references, listen, cheat, tmp_path):
    copied = tmp_path / "results"
    shutil.copytree(runs["words"], copied)
    cheat.apply(copied)
    _, verdicts = audited(world, copied, references, listen)
    assert failures(verdicts) == {cheat.caught_by}, verdicts["A15"].reason
    assert "text was written" in verdicts["A15"].reason


def test_few_faster_voices_do_not_hide_many_that_were_moved(rule_set):
    verdict = rule_set(faster=2, moved=2, honest=4)
    assert verdict.status == "fail" and "4 of 8 samples are heard before" in verdict.reason
    late = rule_set(faster=2, moved=6, honest=0)
    assert late.status == "not_evidenced" and "a transcript that comes late" in late.reason
    assert rule_set(faster=4, moved=4, honest=0).status == "fail"


@pytest.fixture
def rule_set():
    def judged(**counts):
        kinds = [kind for kind, count in counts.items() for _ in range(count)]
        answers = [
            (f"s{n}", passed("WER 0.1", **({} if kind == "honest" else {"early": kind})))
            for n, kind in enumerate(kinds)
        ]
        return early_voices(answers)

    return judged


def written(*times):
    lines = [
        {"kind": "text", "t": t, "delta": f"{word} "} for t, word in zip(times, WORDS, strict=False)
    ]
    return Trace(lines=[{"kind": "header"}, *lines], tail="")


WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine"]


def heard_at(*times):
    return {"words": [[t - 0.2, t, word] for t, word in zip(times, WORDS, strict=False)]}


def test_a_late_transcript_is_early_sound_and_no_faster_sound():
    late = aligned(written(*(2.0 + n for n in range(9))), heard_at(*(1.0 + n for n in range(9))))
    assert late.is_early and not late.is_faster
    fast = aligned(
        written(*(1.0 + n for n in range(9))), heard_at(*(1.2 + 0.7 * n for n in range(9)))
    )
    assert fast.is_faster
    slow = aligned(written(*(1.0 + n for n in range(9))), heard_at(*(1.5 + n for n in range(9))))
    assert (slow.early, slow.is_early) == (0, False)


def test_nothing_is_said_of_few_words_or_of_transcripts_without_times():
    trace = written(*range(9))
    assert aligned(trace, {"text": "one two three four"}) is None
    assert aligned(trace, heard_at(1, 2, 3)) is None and aligned(trace, None) is None
