"""The static steps (what CUDA graphs hold) give what the plain steps give, step by step."""

import numpy as np
import pytest
import torch

from hfd.models.graphs.fused import Fused
from hfd.models.registry import create_model
from hfd.models.roma import model as roma_model
from hfd.models.roma import unit as units
from hfd.models.roma.settings import parse_settings
from hfd.models.roma.steps_eager import EagerSteps
from hfd.models.roma.steps_graphs import GraphSteps
from tests.models.roma.helpers import TINY, comparable, make_units, run, sound

pytestmark = pytest.mark.heavy
SIZES = [(320, 180), (180, 320), (300, 300), (64, 64)]


@pytest.fixture(scope="module")
def both(parts, snapshot):
    settings = parse_settings({"model_path": str(snapshot), **TINY, "max_media_s": 20.0})
    return EagerSteps(parts, settings), GraphSteps(parts, settings, capture=False)


@pytest.mark.parametrize("size", SIZES)
def test_encoders_equal_upstream(both, parts, size):
    unit = make_units(1, width=size[0], height=size[1])[0]
    patches, grid = units.patchify(units.resize_all([f.rgb for f in units.two_frames(unit)]))
    mel = units.log_mel(parts.mel, unit.pcm)
    with torch.no_grad():
        plain, static = ((s.see(patches, grid), s.hear(mel)) for s in both)
    for one, other in zip(plain, static, strict=True):
        assert one.shape == other.shape
        assert (one - other).abs().max() <= 1e-5


def test_text_of_any_length_is_read_the_same(both):
    """Shorter and longer than a block, and across the border of a bucket."""
    generator = torch.Generator().manual_seed(2)
    for steps in both:
        steps.begin(units.Grid(7, 12))
    position = 0
    for count in (1, 7, 128, 129, 300, 1, 1, 1500, 1, 113):
        ids = torch.randint(0, 256, (count,), generator=generator).tolist()
        places = units.text_positions(position, count)
        position += count
        with torch.no_grad():
            one, other = (steps.think(steps.embed(ids), places) for steps in both)
        assert one.hidden.shape == other.hidden.shape
        assert (one.hidden - other.hidden).abs().max() <= 1e-4
        assert (one.layers - other.layers).abs().max() <= 1e-4
        assert int(one.token) == int(other.token)


@pytest.mark.parametrize("count", [1, 11, 12, 30, 84, 100])
def test_sound_of_any_length_is_made_the_same(both, count):
    generator = torch.Generator().manual_seed(count)
    codes = torch.randint(0, 60, (count,), generator=generator)
    noise = torch.randn(2 * count, 80, generator=generator)
    with torch.no_grad():
        mels = [steps.make_mel(codes, noise) for steps in both]
        waves = [steps.make_wave(mels[0]) for steps in both]
    assert (mels[0] - mels[1]).abs().max() <= 1e-4
    assert (waves[0] - waves[1]).abs().max() <= 1e-4


class StaticRoma(roma_model.Roma):
    def make_steps(self, parts):
        return GraphSteps(parts, self.settings, capture=False)


def test_whole_files_have_the_same_tokens_codes_and_sound(snapshot):
    """Three files in one process, the second longer: also that none leaves anything behind."""
    settings = {"model_path": str(snapshot), **TINY, "threshold": 0.0, "max_media_s": 20.0}
    plain, static = create_model("roma", settings), StaticRoma(settings)
    plain.load()
    static.load()
    for seed, count, size in ((1, 3, (320, 180)), (2, 8, (180, 320)), (3, 3, (320, 180))):
        media = make_units(count, width=size[0], height=size[1], seed=seed)
        outcomes = [run(model, media, seed=seed) for model in (plain, static)]
        waves = [sound(events) for events, _ in outcomes]
        assert outcomes[0][1] == outcomes[1][1]
        assert len(waves[0]) == len(waves[1]) > 24_000
        assert np.abs(waves[0] - waves[1]).max() <= 1e-4
        for one, other in zip(outcomes[0][0], outcomes[1][0], strict=True):
            assert without_numbers(one) == without_numbers(other)


def without_numbers(events):
    """Everything but sound (compared above) and the probabilities' last digits."""
    plain = []
    for kind, value in comparable(events):
        if kind == "listen":
            value = {**value, "speak_probability": round(value["speak_probability"], 4)}
        if kind != "audio":
            plain.append((kind, value))
    return plain


def test_fused_layers_share_their_memory_and_stay_themselves():
    layers = [torch.nn.Linear(8, size) for size in (3, 5, 4)]
    layers[1] = torch.nn.Linear(8, 5, bias=False)
    states = torch.randn(6, 8)
    wanted = torch.cat([layer(states) for layer in layers], dim=-1)
    first, second = Fused(*layers), Fused(*layers)
    assert torch.allclose(first(states), wanted, atol=1e-6)
    assert torch.equal(first(states), second(states))
    assert torch.allclose(torch.cat([layer(states) for layer in layers], dim=-1), wanted, atol=1e-6)
    place = first.weight.data_ptr()
    assert second.weight.data_ptr() == layers[0].weight.data_ptr() == place
