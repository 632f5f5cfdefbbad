"""Playback: speech is never moved earlier, cut or stretched, except by a stop."""

import numpy as np

from hfd.stream.playback import Playback


def ones(n, value=1):
    return np.full(n, value, "<i2")


def test_a_chunk_waits_for_the_one_before_it():
    play = Playback(1000)
    assert play.add(ones(500), 1.0) == 1000
    assert play.add(ones(500), 1.2) == 1500  # queued: the first still plays
    assert play.add(ones(100), 3.0) == 3000  # late: a gap stays a gap
    assert play.segments() == [(1000, 2000), (3000, 3100)]
    assert not play.track()[2000:3000].any()


def test_a_stop_drops_only_what_was_not_played():
    play = Playback(1000)
    play.add(ones(1000), 0.0)
    play.add(ones(1000, 2), 0.1)
    assert play.cut(1.5) == (1500, 500)
    assert play.add(ones(10, 3), 1.6) == 1600
    track = play.track()
    assert track[1499] == 2 and not track[1500:1600].any() and track[1600] == 3
    assert play.cleared == 500


def test_a_stop_after_everything_was_played_drops_nothing():
    play = Playback(1000)
    play.add(ones(100), 0.0)
    assert play.cut(5.0) == (100, 0)
    assert play.add(ones(1), 5.0) == 5000


def test_a_stop_in_a_gap_moves_nothing_that_was_heard():
    play = Playback(1000)
    play.add(ones(100), 0.0)
    play.add(ones(100), 2.0)
    assert play.cut(1.0) == (1000, 100)
    assert len(play.track()) == 1000 and play.samples == 100


def test_the_track_reaches_at_least_the_medias_end():
    play = Playback(1000)
    play.add(ones(10), 0.0)
    assert len(play.track(at_least=700)) == 700
