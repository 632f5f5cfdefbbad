"""One form for what is written and what is heard; what a cut took away is not counted."""

import pytest

from hfd.judge.delivered import Turn
from hfd.judge.intervals import Interval
from hfd.judge.spoken_words import heard_share, normalised, sounds_alike, word_error_rate
from hfd.judge.transcript import compared

LONG = "I can see a man in a red coat who walks along the river with two small dogs"


@pytest.mark.parametrize(
    ("written", "heard"),
    [
        ("There're TWO dogs!", "therere two dogs"),
        ("21 of 1,024", "twenty one of one thousand twenty four"),
        ("In 1996, 3.5 %", "in nineteen ninety six three point five percent"),
        ("It costs $5 & more.", "it costs five dollars and more"),
        ("1.50 in 2000, 1905", "one point five zero in two thousand nineteen oh five"),
        ("Mr. Brown, the 21st", "mister brown the twenty first"),
    ],
)
def test_numbers_signs_and_titles_have_one_form(written, heard):
    assert normalised(written) == heard.split()
    assert word_error_rate(normalised(written), normalised(heard)) == 0.0


@pytest.mark.parametrize(
    ("first", "second", "alike"),
    [
        ("anne", "ann", True),
        ("philipp", "filip", True),
        ("catherine", "katherine", True),
        ("dog", "dig", False),
        ("three", "tree", False),
        ("walks", "talks", False),
    ],
)
def test_names_are_compared_as_they_sound(first, second, alike):
    assert sounds_alike(first, second) is alike


def test_edits_are_counted_for_each_written_word():
    assert word_error_rate(["a", "b", "c"], ["a", "x", "c", "d"]) == pytest.approx(2 / 3)


def test_the_unheard_end_of_a_cut_answer_is_not_counted():
    said = normalised(LONG)
    assert heard_share([(said, True)], said[:6]) == (0.0, 6)
    assert heard_share([(said, False)], said[:6])[0] > 0.6
    then = normalised("Sorry, please go on.")
    assert heard_share([(said, True), (then, False)], [*said[:6], *then]) == (0.0, 10)


def test_other_words_than_those_of_a_cut_answer_still_count():
    wrong = ["there", "are", "three", "people", "in", "the", "picture"]
    assert heard_share([(normalised(LONG), True)], wrong)[0] > 0.6


def test_the_rate_of_chinese_speech_leaves_out_what_was_cut():
    whole = Turn("有三个人在公园里", [Interval(1.0, 3.0)], cut=False)
    cut = Turn("这是最好的时代，这是最坏的时代", [Interval(4.0, 4.5)], cut=True)
    speech = [Interval(1.0, 3.0), Interval(4.0, 4.5)]
    assert compared([whole, cut], speech, None)["h21_han_per_s"] == pytest.approx(4.0)
    assert compared([cut], speech, None)["h21_han_per_s"] is None
