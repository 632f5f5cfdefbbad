"""Pieces that wait and are read together, against transformers' own passes one by one."""

import pytest
import torch
import transformers

from hfd.models.minicpmo import drawing, reader
from hfd.models.minicpmo.drawing import Drawing, agrees
from hfd.models.minicpmo.reader import Reader, Talker
from tests.models.graphs.outlive import Outlive

pytestmark = pytest.mark.heavy

SIZES = {"hidden_size": 64, "intermediate_size": 96, "vocab_size": 300, "num_hidden_layers": 2}
PIECES = (1, 1, 64, 1, 1, 64, 1, 10, 1, 1, 200, 1, 1)
WANTED = (7, 8, 10, 11, 12)
"""After which pieces logits are wanted; one piece is longer than a block."""


@pytest.fixture(scope="module")
def llm():
    torch.manual_seed(1)
    config = transformers.Qwen3Config(
        **SIZES, num_attention_heads=4, num_key_value_heads=2, head_dim=16
    )
    model = transformers.Qwen3ForCausalLM(config).eval().requires_grad_(False)
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    return model


def pieces():
    generator = torch.Generator().manual_seed(2)
    return [torch.randn(count, 64, generator=generator) for count in PIECES]


def one_by_one(llm):
    """Logits and states after each piece that wants them, a pass for each piece."""
    cache, results = transformers.DynamicCache(), []
    for number, piece in enumerate(pieces()):
        out = llm(inputs_embeds=piece[None], past_key_values=cache, output_hidden_states=True)
        if number in WANTED:
            results.append((out.logits[:, -1], out.hidden_states[-1]))
    return results


def test_pieces_read_together_are_what_they_are_one_by_one(llm):
    reader = Reader(llm, 1024, None)
    for _ in range(2):  # a second sample over the first one's slots
        fed, results = 0, []
        for number, piece in enumerate(pieces()):
            result = reader.feed(piece, return_logits=number in WANTED)
            fed += piece.shape[0]
            assert reader.length() == fed
            if result is not None:
                results.append(result)
        for (logits, states), (wanted, hidden) in zip(results, one_by_one(llm), strict=True):
            assert logits.shape == wanted.shape and states.shape == hidden.shape
            assert torch.allclose(logits, wanted, atol=1e-3)
            assert torch.allclose(states, hidden, atol=1e-3)
        reader.reset()
        assert reader.length() == 0


def test_the_talker_goes_on_where_a_turn_was_and_a_new_turn_begins_anew():
    torch.manual_seed(3)
    config = transformers.LlamaConfig(**SIZES, num_attention_heads=4, num_key_value_heads=4)
    model = transformers.LlamaModel(config).eval().requires_grad_(False)
    talker = Talker(model, 512, None)
    generator = torch.Generator().manual_seed(4)
    for _ in range(2):
        cache, kept = transformers.DynamicCache(), None
        for count in (19, 1, 1, 8, 1, 40):
            embeds = torch.randn(1, count, 64, generator=generator)
            wanted = model(inputs_embeds=embeds, past_key_values=cache).last_hidden_state
            out = talker.forward(inputs_embeds=embeds, past_key_values=kept, use_cache=True)
            kept = out.past_key_values
            assert torch.allclose(out.last_hidden_state, wanted, atol=1e-4)


class SlowDecoder:
    """Draws as upstream's documentation says, a token's penalty at a time."""

    chunk_eos_id, turn_eos_id = 7, 8

    def __init__(self, end_factor: float = 1.1) -> None:
        self.forbidden_token_ids, self.special_token_ids = [3, 4, 5, 7], []
        self.end_factor = end_factor
        self.reset()

    def reset(self) -> None:
        self.generated_tokens, self.generated_special_tokens = [], []

    def decode(
        self, logits, mode, temperature, top_k, top_p, text_repetition_penalty, length_penalty=1.1
    ):
        logits = logits.clone()
        first = torch.multinomial(logits[0].softmax(-1), 1)
        if first.item() == self.chunk_eos_id:
            return first
        for number in self.forbidden_token_ids:
            logits[0, number] = -torch.inf
        for number in set(self.generated_tokens):
            logits[0, number] /= text_repetition_penalty
        end = logits[0, self.turn_eos_id].clone()
        factor = self.end_factor
        logits[0, self.turn_eos_id] = end / factor if end > 0 else end * factor
        logits /= temperature
        least = logits[0].topk(top_k)[0][-1]
        logits[0, logits[0] < least] = -torch.inf
        order = logits[0].argsort(descending=True)
        share = logits[0, order].softmax(-1).cumsum(-1)
        beyond = torch.cat([torch.tensor([False]), (share > top_p)[:-1]])
        logits[0, order[beyond]] = -torch.inf
        token = torch.multinomial(logits.softmax(-1), 1)[:, 0]
        self.generated_tokens.append(token.item())
        return token


ARGUMENTS = {"mode": "sampling", "temperature": 0.7, "top_k": 30, "top_p": 0.8}


@pytest.mark.parametrize("end_factor, same", [(1.1, True), (3.0, False)])
def test_faster_drawing_is_used_only_where_it_draws_the_same(end_factor, same):
    decoder = SlowDecoder(end_factor)
    faster = Drawing(decoder, torch.zeros(300), None).decode
    arguments = {**ARGUMENTS, "text_repetition_penalty": 1.3}
    assert agrees(decoder, faster, arguments, 300, torch.zeros(1)) is same
    assert decoder.generated_tokens == []
    unknown = {**arguments, "text_repetition_window_size": 512}
    assert not agrees(decoder, faster, unknown, 300, torch.zeros(1))


def test_what_captured_readers_and_draws_read_outlives_their_making(monkeypatch, llm):
    outlive = Outlive(monkeypatch, reader, drawing)
    made = Reader(llm, 1024, None)
    talker = Talker(llm.model, 1024, None)
    for piece in pieces():
        made.feed(piece, return_logits=True)
        talker.forward(inputs_embeds=piece[None])
    faster = Drawing(SlowDecoder(), torch.zeros(300), None)
    for _ in range(3):
        faster.decode(torch.randn(1, 300), text_repetition_penalty=1.1)
    outlive.check()
