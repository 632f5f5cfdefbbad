"""Captured steps and their parts against torch's and transformers' own."""

from __future__ import annotations

import shutil

import pytest
import torch
from torch.nn import functional as F

from hfd.models.graphs.attention import causal_bias, static_attention
from hfd.models.graphs.capture import CaptureError, Lane, Step, check_equal
from hfd.models.graphs.decoder import StaticCache, decode, signed
from hfd.models.graphs.sampling import Sampling

pytestmark = pytest.mark.heavy
DEVICES = [torch.device("cuda", number) for number in range(torch.cuda.device_count())]


def test_attention_of_a_batch_sees_of_each_row_what_came_before():
    generator = torch.Generator().manual_seed(1)
    query = torch.randn(2, 4, 3, 8, generator=generator)
    key, value = torch.randn(2, 2, 2, 16, 8, generator=generator)
    start = torch.tensor([0, 9])
    bias = causal_bias(start, 3, 16, 2, torch.float32)
    out = static_attention(query, key, value, bias, 0.5)
    for row, first in enumerate(start.tolist()):
        for token in range(3):
            seen = first + token + 1
            keys, values = (
                part[row, :, :seen].repeat_interleave(2, dim=0) for part in (key, value)
            )
            one = F.scaled_dot_product_attention(
                query[row, :, token : token + 1], keys, values, scale=0.5
            )
            assert torch.allclose(out[row, token], one.flatten(), atol=1e-6)


@pytest.mark.parametrize(
    ("kind", "compiled"), [("Qwen2", False), ("Qwen3", False), ("Qwen3", True)]
)
def test_rows_of_a_batch_at_places_of_their_own_are_what_transformers_computes(kind, compiled):
    """Biases (Qwen2) and norms of query and key (Qwen3), in float32."""
    if compiled and shutil.which("g++") is None:
        pytest.skip("torch.compile needs a C++ compiler on the CPU")
    import transformers

    torch.manual_seed(2)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "vocab_size": 8, "num_hidden_layers": 2}
    sizes |= {"num_attention_heads": 4, "num_key_value_heads": 2}
    config = getattr(transformers, f"{kind}Config")(**sizes)
    model = getattr(transformers, f"{kind}Model")(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    texts = torch.randn(2, 9, 32)
    lengths = [4, 7]
    with torch.no_grad():
        wanted = model(inputs_embeds=texts, output_hidden_states=True)
        cache = StaticCache(model, 16, 2, compiled)
        cos, sin = model.rotary_emb(texts, torch.arange(16)[None])
        cos, sin = cos[0, :, None], signed(sin)[0, :, None]

        def step(states, slots):
            bias = causal_bias(slots[:, 0], slots.shape[1], 16, 2, torch.float32)
            return decode(model, states, (cos[slots], sin[slots]), slots, bias, cache, [1])

        # Both rows as blocks of 7, of which the shorter one's end is overwritten afterwards.
        opening = texts[:, :7].clone()
        opening[0, lengths[0] :] = 100.0
        first, _ = step(opening, torch.arange(7).expand(2, -1))
        after = torch.stack([texts[row, n : n + 1] for row, n in enumerate(lengths)])
        second, kept = step(after, torch.tensor(lengths)[:, None])
    for row, length in enumerate(lengths):
        whole = wanted.last_hidden_state[row]
        assert torch.allclose(first[row, :length], whole[:length], atol=1e-4)
        assert torch.allclose(second[row, 0], whole[length], atol=1e-4)
        assert torch.allclose(kept[1][row, 0], wanted.hidden_states[1][row, length], atol=1e-4)


def test_each_row_of_a_batch_is_drawn_as_if_alone():
    generator = torch.Generator().manual_seed(3)
    logits = 3 * torch.randn(20, 40, generator=generator)
    seen, banned = torch.rand(2, 20, 40, generator=generator) < 0.2
    draw = torch.rand(20, generator=generator)
    for sampling in (Sampling(0.8, 10, 0.9, 1.2), Sampling(0.0, 10, 1.0, 1.2)):
        together = sampling.pick(logits, draw, seen, banned)
        alone = [sampling.pick(*row) for row in zip(logits, draw, seen, banned, strict=True)]
        assert together.tolist() == [int(token) for token in alone]
        assert not banned.gather(-1, together[:, None]).any()


def test_a_step_without_a_lane_runs_as_it_is():
    total = torch.zeros(3)
    step = Step(lambda: total.add_(1), None, [total])
    assert total.sum() == 0
    step()
    assert step().tolist() == [2, 2, 2]


@pytest.mark.parametrize(
    ("replayed", "expected"),
    [
        (torch.tensor([1, 2]), torch.tensor([1, 3])),
        (torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1])),
        (torch.tensor([1.0, float("nan")]), torch.tensor([1.0, 2.0])),
    ],
)
def test_a_replay_that_differs_is_refused(replayed, expected):
    check_equal([expected], [expected])
    check_equal([torch.tensor([1.0, 2.001])], [torch.tensor([1.0, 2.0])])
    with pytest.raises(CaptureError, match="other values than the plain one"):
        check_equal([replayed], [expected])


@pytest.mark.gpu
@pytest.mark.skipif(not DEVICES, reason="needs a CUDA device")
@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_a_step_is_captured_on_its_own_device_whatever_the_current_one_is(device):
    for current in DEVICES:
        with torch.cuda.device(current):
            weight = torch.randn(64, 64, device=device)
            given, count = torch.ones(64, device=device), torch.zeros(1, device=device)

            def function(weight=weight, given=given, count=count):
                count.add_(1)
                return weight @ given + count

            step = Step(function, Lane.make(device), [count])
            assert count.item() == 0
            for number in (1, 2, 3):
                given.fill_(number)
                assert torch.allclose(step(), weight @ given + number, atol=1e-3)


@pytest.mark.gpu
@pytest.mark.skipif(not DEVICES, reason="needs a CUDA device")
def test_a_function_that_a_graph_cannot_hold_is_found_at_the_capture():
    """A number that Python adds is in the graph as it was at the capture."""
    counted = [0]
    out = torch.zeros(1, device=DEVICES[0])

    def function():
        counted[0] += 1
        return out + counted[0]

    with pytest.raises(CaptureError):
        Step(function, Lane.make(DEVICES[0]))


@pytest.mark.gpu
@pytest.mark.skipif(not DEVICES, reason="needs a CUDA device")
def test_lanes_that_are_in_use_never_share_a_stream():
    """Torch hands out 32 streams in turn, again and again."""
    kept = [Lane.make(DEVICES[0]) for _ in range(24)]
    for _ in range(40):
        kept[-1] = Lane.make(DEVICES[0])
        assert len({lane.stream.cuda_stream for lane in kept}) == len(kept)
