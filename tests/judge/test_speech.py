"""Speech found in real readings: inside the file, wherever the detector began, one turn as one."""

import itertools

import numpy as np
import pytest

from hfd.judge import metrics
from hfd.judge.intervals import Interval
from hfd.judge.metrics import Answer, Question
from hfd.judge.speech import detect
from tests.judge.speech_clips import part

RATE = 24_000
CLIPS = [("two_cities", 0.7), ("beckett", 3.0), ("endgame_nagg_nell", 5.3), ("two_cities", 7.6)]
QUESTION = Question(8.0, Interval(1.0, 3.0), Interval(5.0, 8.0))


def int16(sound):
    return np.rint(sound * 20000).astype("<i2")


@pytest.mark.parametrize("samples", [47_999, 47_000, 40_001, 33_333])
@pytest.mark.parametrize("rate", [16_000, 22_050, 24_000])
def test_no_segment_ends_after_the_file(samples, rate):
    pcm = int16(part("two_cities", rate, 1.0, 3.0)[:samples])
    segments = detect(pcm, rate).segments()
    assert segments and segments[-1].end <= len(pcm) / rate
    assert segments[-1].end > len(pcm) / rate - 0.2, "speech is cut at the end of this file"


def in_noise(name, at, begins, lead, level=0.002):
    """A track in which speech begins at `begins` s and noise, exactly the same, `lead` s before."""
    clip = part(name, RATE, at, 2.0)
    noise = np.random.default_rng(1).normal(0, level, RATE * 7)
    start = round(begins * RATE)
    sound = np.zeros(RATE * 7)
    first = start - round(lead * RATE)
    sound[first:] = noise[first:]
    sound[start : start + len(clip)] += clip
    return int16(sound)


@pytest.mark.parametrize(("name", "at"), CLIPS)
def test_an_onset_does_not_depend_on_where_the_detector_began(name, at):
    """Restarts after digital silence of other lengths; they moved onsets by up to 116 ms."""
    leads = (0.31, 0.5, 0.77, 1.0, 1.5, 2.0, 2.9)
    found = [detect(in_noise(name, at, 3.0, n), RATE).segments()[0].start for n in leads]
    assert max(found) - min(found) <= 0.02, found


@pytest.mark.parametrize(("name", "at"), CLIPS)
def test_an_onset_moves_with_the_sound_wherever_the_steps_fall(name, at):
    sound = int16(np.random.default_rng(1).normal(0, 0.002, RATE * 7))
    clip = int16(part(name, RATE, at, 2.0))
    found = []
    for begins in (3.0, 3.005, 3.011, 3.017, 3.023, 3.029):
        track = sound.copy()
        start = round(begins * RATE)
        track[start : start + len(clip)] += clip
        found.append(detect(track, RATE).segments()[0].start - begins)
    assert max(found) - min(found) <= 0.02, found


def test_a_hole_of_350_ms_in_a_turn_begins_no_new_turn():
    """Speech from before the prefix to its end, with a hole inside it, is no barge-in on it."""
    hole = round(0.35 * RATE)
    sound = np.zeros(RATE * 4)
    sound[RATE // 2 : RATE // 2 + RATE] = part("two_cities", RATE, 2.6, 1.0)
    second = RATE // 2 + RATE + hole
    sound[second : second + RATE] = part("two_cities", RATE, 3.6, 1.0)
    segments = detect(int16(sound), RATE).segments()
    holes = [b.start - a.end for a, b in itertools.pairwise(segments)]
    assert any(1.0 < part.start < 3.0 for part in segments), "there is a hole inside the prefix"
    assert holes == [pytest.approx(0.35, abs=0.05)]
    values = metrics.hesitation_metrics(Answer(segments, (), (), RATE, 11.0), QUESTION)
    assert values["h2_prefix_barge_in"] is False
    assert values["h6_overlap_s"] < values["fdb_overlap_s"], "the benchmark counts the hole too"


def hold(*segments, texts=()):
    answer = Answer([Interval(a, b) for a, b in segments], texts, (), RATE, 11.0)
    return metrics.hesitation_metrics(answer, QUESTION) | metrics.response_metrics(answer, QUESTION)


def test_a_hole_is_no_yielding_and_makes_no_answer_of_speech_that_spans_the_question():
    assert hold((4.0, 4.9), (5.25, 7.0))["h8_yield_s"] == pytest.approx(2.0)
    over = hold((6.0, 7.9), (8.25, 9.0))
    assert over["h10_spanning"] and over["h9_response_s"] is None
    longer = hold((6.0, 7.4), (8.25, 9.0))
    assert not longer["h10_spanning"] and longer["h9_response_s"] == pytest.approx(0.25)


def test_pieces_of_a_turn_are_judged_as_one():
    assert hold((3.2, 3.8), (4.1, 4.6))["h1_gap_takeover"], "1.4 s with a hole of 0.3 s"
    assert hold((3.2, 3.5), (4.2, 4.5))["h4_gap_backchannels"] == 2


def test_the_public_benchmark_counts_the_whole_file():
    apart = hold((0.2, 0.5), (9.0, 9.3))
    assert apart["fdb_tor_whole"] and not apart["h5_hold_failure"]
    assert not hold((9.0, 9.3))["fdb_tor_whole"]
    assert hold((9.0, 9.3), texts=[(9.0, "Yes, that is right.")])["fdb_tor_whole"]
    assert hold()["fdb_overlap_s"] == 0.0
