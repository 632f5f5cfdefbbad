"""The captured solver's fixed inputs and times, over a small solver called as upstream's is.

The true one was run in the same way (docs/proof.md); its buffers are of two gigabytes.
"""

import pytest
import torch

from hfd.models.minicpmo import flow
from hfd.models.minicpmo.flow import FlowSolver
from tests.models.graphs.outlive import Outlive

pytestmark = pytest.mark.heavy

STEPS, VOICE = 4, 60


class Times(torch.nn.Module):
    """Embeds the solver's time; its frequencies come from the CPU, anew at every call."""

    def forward(self, time):
        return torch.cos(time[:, None] * torch.tensor([1.0, 3.0, 9.0]))


class SmallSolver(torch.nn.Module):
    """Three channels; context and a step's last two frames matter, and the caches are buffers."""

    out_channels = 3

    def __init__(self):
        super().__init__()
        self.estimator = torch.nn.Module()
        self.estimator.t_embedder = Times()
        self.rand_noise = torch.randn(1, 3, 1000, generator=torch.Generator().manual_seed(0))
        self.cnn_cache_buffer = torch.zeros(8, 2, 2, 3, 2)
        self.att_cache_buffer = torch.zeros(8, 2, 2, 1, 400, 3)

    @torch.inference_mode()
    def forward_chunk(
        self, mu, spks, cond, n_timesteps=10, temperature=1.0, cnn_cache=None, att_cache=None
    ):
        past = 0 if att_cache is None else att_cache.shape[4]
        frames = mu.shape[2]
        x = self.rand_noise[:, :, past : past + frames] * temperature
        time = torch.zeros(2)
        for step in range(n_timesteps):
            size = self.estimator.t_embedder(time)[:1, :, None]
            known = torch.zeros(()) if att_cache is None else att_cache[step].tanh().sum()
            last = torch.zeros(()) if cnn_cache is None else cnn_cache[step].sum()
            x = x + 0.1 * (torch.sin(x + mu + spks[..., None] + cond + known + last) * size)
            self.cnn_cache_buffer[step] = x[0, :, -2:]
            if att_cache is not None:
                self.att_cache_buffer[step][..., :past, :] = att_cache[step]
            self.att_cache_buffer[step][..., past : past + frames, :] = x[0].T
            time = time + 1 / n_timesteps
        return x, self.cnn_cache_buffer, self.att_cache_buffer[..., : past + frames, :]


def voiced(solver):
    """The caches after the voice, as upstream keeps them for each turn."""
    mu = torch.ones(1, 3, VOICE)
    _, cnn, att = solver.forward_chunk(mu, torch.ones(1, 3), mu, STEPS)
    return {"estimator_cnn_cache": cnn.clone(), "estimator_att_cache": att.clone()}


def speak(call, caches, seed, chunks=(50, 50, 50, 50, 13)):
    """Mel of a turn, the context cut as upstream cuts it."""
    generator = torch.Generator().manual_seed(seed)
    cnn, att = caches["estimator_cnn_cache"], caches["estimator_att_cache"]
    said = []
    for frames in chunks:
        mu = torch.randn(1, 3, frames, generator=generator)
        spks = torch.randn(1, 3, generator=generator)
        mel, cnn, att = call(
            mu=mu, spks=spks, cond=torch.zeros_like(mu), n_timesteps=STEPS,
            temperature=1.0, cnn_cache=cnn, att_cache=att,
        )  # fmt: skip
        said.append(mel.clone())
        if att.shape[4] > VOICE + 100:
            att = torch.cat([att[..., :VOICE, :], att[..., -100:, :]], dim=4)
    return torch.cat(said, dim=2)


def test_a_turn_through_the_fixed_inputs_is_upstreams_and_forgets_the_turn_before():
    plain, solver = SmallSolver(), SmallSolver()
    caches = voiced(plain)
    wanted = [speak(plain.forward_chunk, caches, seed) for seed in (1, 2)]
    faster = FlowSolver(solver, None)
    faster.warm_up(voiced(solver), STEPS)
    a, b, again = (speak(faster.forward_chunk, caches, seed) for seed in (1, 2, 1))
    assert torch.equal(a, wanted[0]) and torch.equal(b, wanted[1]) and torch.equal(again, a)


def test_what_the_captured_solver_reads_outlives_its_making(monkeypatch):
    outlive = Outlive(monkeypatch, flow)
    solver = SmallSolver()
    faster = FlowSolver(solver, None)
    faster.warm_up(voiced(solver), STEPS)
    outlive.check()
