"""How long a step takes decides when something is said, never what."""

import random
import time

import numpy as np
import pytest

from hfd.duplex.events import Audio, Metric, Text
from hfd.models.roma import model as roma_model
from hfd.models.roma.steps import Sound
from hfd.models.roma.steps_eager import EagerSteps
from hfd.models.roma.steps_graphs import GraphSteps
from tests.models.roma.helpers import TINY, comparable, make_units, run

pytestmark = pytest.mark.heavy


class Late:
    """A GPU event that comes after some questions; waiting for it is always possible."""

    def __init__(self, chance):
        self._chance = chance
        self._questions = chance.choice([0, 1, 7, 60, 100_000])

    def query(self):
        self._questions -= 1
        return self._questions < 0

    def synchronize(self):
        time.sleep(self._chance.random() / 500)


class SlowSteps:
    """Steps that now and then sleep, with sound that is ready at any moment; codes are noted."""

    def __init__(self, steps, chance):
        self._steps, self._chance = steps, chance
        self.codes = []

    def __getattr__(self, name):
        found = getattr(self._steps, name)
        if callable(found) and self._chance.random() < 0.3:
            time.sleep(self._chance.random() / 300)
        return found

    def read_code(self):
        self.codes.append(self._steps.read_code())
        return self.codes[-1]

    def start_sound(self, codes, noise):
        return Sound(self._steps.start_sound(codes, noise).wave, Late(self._chance))


@pytest.mark.parametrize("kind", [EagerSteps, GraphSteps])
def test_random_delays_change_no_token_no_code_no_chunk_and_no_sample(snapshot, kind):
    outcomes = []
    for chance in (random.Random(1), random.Random(2), random.Random(3)):
        settings = {"model_path": str(snapshot), **TINY, "threshold": 0.0, "max_media_s": 20.0}
        model = roma_model.Roma(settings)
        model.make_steps = lambda parts, model=model, chance=chance: SlowSteps(
            make(kind, parts, model.settings), chance
        )
        model.load()
        events, ending = run(model, make_units(4))
        outcomes.append(([said(unit) for unit in events], ending, model._steps.codes))
    assert len(outcomes[0][2]) > 100
    assert sum(len(audio) for _, audio, _ in outcomes[0][0]) > 6
    assert outcomes[0] == outcomes[1] == outcomes[2]


def make(kind, parts, settings):
    if kind is GraphSteps:
        return GraphSteps(parts, settings, capture=False)
    return EagerSteps(parts, settings)


def said(events):
    """A second's texts, sounds and metrics, each in order.

    Which of a text and a sound comes first depends on which existed first, as their times do.
    """
    texts = [event.delta for event in events if isinstance(event, Text)]
    sounds = [np.asarray(event.pcm).tobytes() for event in events if isinstance(event, Audio)]
    return texts, sounds, comparable([event for event in events if isinstance(event, Metric)])
