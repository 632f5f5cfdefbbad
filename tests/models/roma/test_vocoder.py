"""The vocoder: equal to upstream in one call, whole and smooth in chunks."""

import numpy as np
import pytest
import torch

from hfd.models.roma.settings import parse_settings
from hfd.models.roma.steps import HOP, solve_flow, solver_times
from hfd.models.roma.steps_eager import EagerSteps
from hfd.models.roma.vocoder import Vocoder, block_noise

pytestmark = pytest.mark.heavy
BLOCK = 12


@pytest.fixture
def steps(parts, snapshot):
    return EagerSteps(parts, parse_settings({"model_path": str(snapshot), "num_steps": 3}))


def codes_of(count, seed=0):
    return torch.randint(0, 60, (count,), generator=torch.Generator().manual_seed(seed)).tolist()


def speak(steps, codes, *, whole=False, seed=5):
    """Chunks of sound, in order."""
    vocoder = Vocoder(steps, block_noise(seed, 24, 80), BLOCK, whole)
    chunks = []
    with torch.no_grad():
        for code in codes:
            vocoder.add(code)
            chunks += vocoder.take()
        vocoder.end()
        chunks += vocoder.take()
    return chunks


def test_one_call_equals_upstream_with_the_same_noise(steps, parts):
    codes = torch.tensor(codes_of(30))
    torch.manual_seed(11)
    noise = torch.randn(1, 60, 80)[0]
    torch.manual_seed(11)
    with torch.no_grad():
        wanted = parts.model.token2wav(
            codes[None], parts.speaker.condition, parts.speaker.reference_mel, num_steps=3
        )
        got = steps.make_wave(steps.make_mel(codes, noise))
    assert wanted.abs().max() > 0.1
    assert (got - wanted).abs().max() <= 1e-5


def test_the_solver_is_fourth_order():
    """On y' = y the error falls by about 2^4 when the step is halved."""
    errors = []
    for count in (9, 17):
        times = torch.linspace(0, 1, count, dtype=torch.float64)
        end = solve_flow(lambda t, y: y, torch.ones(1, dtype=torch.float64), times)
        errors.append(abs(float(end) - np.e))
    assert 12 < errors[0] / errors[1] < 20
    assert solver_times(10)[0] == 0
    assert solver_times(10)[-1] == pytest.approx(1)


@pytest.mark.parametrize("count", [1, 5, 12, 13, 23, 24, 48, 49, 97, 150])
def test_no_sample_is_lost_or_added(steps, count):
    chunks = speak(steps, codes_of(count))
    assert sum(map(len, chunks)) == count * HOP
    assert all(len(chunk) % HOP == 0 for chunk in chunks)


def test_no_code_means_no_sound(steps):
    assert speak(steps, []) == []
    assert speak(steps, [], whole=True) == []


def test_speech_starts_after_the_first_block(steps):
    vocoder = Vocoder(steps, block_noise(1, 24, 80), BLOCK, whole=False)
    with torch.no_grad():
        for code in codes_of(BLOCK):
            assert vocoder.take() == []
            vocoder.add(code)
    assert len(vocoder.take()) == 1


def test_whole_reply_is_the_one_call_waveform(steps):
    codes = codes_of(40)
    noise = torch.cat([block_noise(5, 24, 80)(block) for block in range(4)])[:80]
    with torch.no_grad():
        wanted = steps.make_wave(steps.make_mel(torch.tensor(codes), noise)).numpy()
    assert np.array_equal(np.concatenate(speak(steps, codes, whole=True)), wanted)


def test_a_chunk_never_changes_when_later_codes_do(steps):
    codes = codes_of(100)
    changed = codes[:60] + codes_of(40, seed=9)
    first, second = speak(steps, codes), speak(steps, changed)
    ready = 0
    for one, other in zip(first, second, strict=True):
        ready += len(one)
        if ready <= 36 * HOP:
            assert np.array_equal(one, other)


def test_there_is_no_click_at_a_chunks_edge(steps):
    """Steps between neighbouring samples are as large at the edges as anywhere else."""
    chunks = speak(steps, codes_of(200))
    jumps = np.abs(np.diff(np.concatenate(chunks)))
    edges = np.cumsum([len(chunk) for chunk in chunks])[:-1] - 1
    assert len(edges) > 3
    assert jumps[edges].max() <= np.quantile(jumps, 0.999)


def test_chunks_come_near_the_one_call_waveform(steps):
    codes = codes_of(200)
    chunked = np.concatenate(speak(steps, codes))
    exact = np.concatenate(speak(steps, codes, whole=True))
    other = np.concatenate(speak(steps, codes, whole=True, seed=6))

    def distance(a, b):
        return float(np.sqrt(np.mean((a - b) ** 2) / np.mean(b**2)))

    assert distance(chunked, exact) < 0.2 * distance(other, exact)
