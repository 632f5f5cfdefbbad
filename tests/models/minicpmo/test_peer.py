"""The public code of MiniCPM-o 4.5 on a tiny random snapshot, under the runner (opt-in).

Needs HFD_PEERS, a folder with clones of OpenBMB/MiniCPM-o-Demo and ZZQ987/Interaction_Train, and
the environment of requirements/minicpmo.txt (any torch will do: the vocoder is a stand-in).
"""

from __future__ import annotations

import importlib.util
import itertools
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from hfd.duplex.events import Audio
from hfd.errors import HfdError
from hfd.models.registry import create_model
from tests.models.minicpmo.helpers import (
    comparable,
    controls,
    make_units,
    metrics,
    run,
    sample,
    sound,
    text,
)
from tests.tiny import minicpmo as tiny

PEERS = Path(os.environ.get("HFD_PEERS", "/none"))
CODE = tiny.find_code(PEERS)
HAS_ENVIRONMENT = all(importlib.util.find_spec(n) for n in ("torch", "transformers", "accelerate"))

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(CODE is None, reason="no clones of the public code under HFD_PEERS"),
    pytest.mark.skipif(not HAS_ENVIRONMENT, reason="not in the environment of envs/minicpmo.yaml"),
]

LISTENING = {"force_listen_s": 3600}
"""A random model hardly ever listens."""


@pytest.fixture(scope="module", autouse=True)
def upstream():
    """One thread; the code's cache of this process; the vocoder's stand-in and any torch."""
    import torch

    from hfd.models.minicpmo import loader

    torch.set_num_threads(1)
    tiny.use_stand_in_vocoder()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loader, "package_problems", list)
        loader.use_own_module_cache()
        yield


@pytest.fixture(scope="module")
def snapshot(tmp_path_factory, upstream):
    folder = tmp_path_factory.mktemp("tiny") / "MiniCPM-o 小"
    tiny.make_snapshot(folder, CODE)
    return folder


def load(folder, **settings):
    model = create_model("minicpmo", {"model_path": str(folder), "device": "cpu", **settings})
    model.identity = model.load()
    return model


@pytest.fixture(scope="module")
def plain(snapshot):
    return load(snapshot)


@pytest.fixture(scope="module")
def faster(snapshot):
    return load(snapshot, acceleration="graphs")


def small(count, **more):
    return make_units(count, width=96, height=64, **more)


def kept(model):
    """Keys and values of the language model."""
    decoder = model._parts.duplex.decoder
    if decoder.cache is None:
        return decoder.feed.__self__.contents()
    return [part for pair in decoder.cache for part in pair]


def script(model, units):
    """Let the model decode these ids, by name, unit by unit; listening after them."""
    import torch

    ids = iter([tiny.IDS.get(name, name) for unit in units for name in unit])
    decoder = model._parts.duplex.decoder

    def decode(*_, **__):
        return torch.tensor([next(ids, tiny.IDS["<|listen|>"])])

    decoder.decode = decode
    return decoder


@pytest.fixture
def scripted(snapshot):
    return load(snapshot)


def test_a_b_a_gives_a_twice_bit_for_bit_in_the_context_too(plain):
    import torch

    a, b = small(3), small(6, seed=4)
    first, ending = run(plain, a, seed=5)
    before = [part.clone() for part in kept(plain)]
    run(plain, b, seed=6)
    again, _ = run(plain, a, seed=5)
    assert [comparable(unit) for unit in again] == [comparable(unit) for unit in first]
    assert all(torch.equal(one, two) for one, two in zip(before, kept(plain), strict=True))
    assert ending["truncated"] and text(first) and np.abs(sound(first)).max() > 0


def test_without_our_resets_upstream_carries_one_sample_into_the_next(plain):
    """The two leaks that the resets are there for: if upstream mends them, this test tells."""
    duplex = plain._parts.duplex
    run(plain, small(6))
    mel = duplex.processor.audio_processor
    assert duplex.model.audio_past_key_values is not None
    plain._session._mel_state, state = {}, plain._session._mel_state
    run(plain, small(1))
    assert mel.dynamic_log_norm is False  # what the next voice would be measured with
    plain._session._mel_state = state


def test_captured_steps_say_what_the_plain_loop_says(plain, faster):
    units = small(5, seed=2)
    one, two = run(plain, units), run(faster, units)
    assert [comparable(unit) for unit in one[0]] == [comparable(unit) for unit in two[0]]
    assert one[1] == two[1]
    assert plain._parts.duplex.total_ids == faster._parts.duplex.total_ids
    import torch

    pairs = zip(kept(plain), kept(faster), strict=True)
    assert all(torch.allclose(a, b[:, :, : a.shape[2]], atol=1e-4) for a, b in pairs)
    assert faster.identity.detail["drawing"] == "vectorised"


def test_captured_steps_forget_a_sample_too(faster):
    first = run(faster, small(3), seed=5)[0]
    run(faster, small(2, seed=4), seed=6)
    again = run(faster, small(3), seed=5)[0]
    assert [comparable(unit) for unit in again] == [comparable(unit) for unit in first]


@pytest.mark.parametrize("size", [(480, 270), (966, 546), (270, 480), (100, 100), (33, 500)])
def test_images_are_prepared_without_pillow_as_upstream_does_it_bit_for_bit(plain, faster, size):
    """Enlarged and made smaller, upright and flat; a noise that is not the one it was tried on."""
    import torch
    from PIL import Image

    from hfd.models.minicpmo.vision import Prepared

    noise = np.random.default_rng(7).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
    images = [Image.fromarray(noise), Image.fromarray(noise // 9 + 100)]
    wanted = plain._parts.duplex.processor.process_image(images, max_slice_nums=1)
    preparer = faster._parts.duplex.processor.process_image
    preparer.learn(size)
    made = preparer(images, max_slice_nums=1)
    assert isinstance(made, Prepared)
    for one, other in zip(made["pixel_values"][0], wanted["pixel_values"][0], strict=True):
        assert torch.equal(one, other)
    assert made["tgt_sizes"][0].tolist() == wanted["tgt_sizes"][0].tolist()
    sliced = preparer(images, max_slice_nums=2)  # upstream's way
    assert not isinstance(sliced, Prepared)


@pytest.mark.parametrize("frames, tokens", [("first", 79), ("stacked", 145)])
def test_a_listening_second_takes_the_tokens_that_the_docs_say(snapshot, frames, tokens):
    model = load(snapshot, frames=frames, **LISTENING)
    events, ending = run(model, make_units(3))
    context = [answer["context_tokens"] for answer in metrics(events, "answer")]
    assert [b - a for a, b in itertools.pairwise(context)] == [tokens] * 2
    assert ending["end_reason"] == "no_speech" and not len(sound(events))


def test_the_grid_is_the_authors_own_pixel_for_pixel():
    utils = pytest.importorskip("minicpmo.utils")
    from PIL import Image

    from hfd.models.minicpmo.frames import grid

    random = np.random.default_rng(0)

    def picture(width, height):
        return Image.fromarray(random.integers(0, 256, (height, width, 3), dtype=np.uint8))

    sizes = [[(48, 27)] * n for n in (1, 2, 3, 4)]
    sizes += [[(27, 48)] * n for n in (2, 3)] + [[(40, 40), (20, 30), (40, 40), (10, 10)]]
    for size in sizes:
        images = [picture(*each) for each in size]
        assert np.array_equal(np.asarray(grid(images)), np.asarray(utils.concat_images(images)))


def test_words_before_a_listen_are_lost_upstream_and_counted_here(scripted):
    script(
        scripted,
        [
            ["<|speak|>", 65, 66, "<|chunk_eos|>"],
            ["<|speak|>", 67, "<|turn_eos|>", "<|listen|>"],
        ],
    )
    events, ending = run(scripted, small(3))
    (lost,) = metrics(events, "lost_text_tokens")
    assert lost["tokens"] == 2 and not ending["truncated"]
    assert controls(events)[:2] == [["speak"], ["listen", "turn_end"]]


def test_a_turns_end_and_a_listen_within_a_turn_are_as_on_the_double(scripted):
    script(
        scripted,
        [
            ["<|speak|>", 65, "<|chunk_eos|>"],
            ["<|listen|>", 66, "<|chunk_eos|>"],
            ["<|speak|>", 67, "<|turn_eos|>", "<|chunk_eos|>"],
            ["<|listen|>"],
        ],
    )
    events, ending = run(scripted, small(4))
    assert controls(events) == [["speak"], [], ["turn_end"], ["listen"], []]
    assert ending == {**ending, "truncated": False, "end_reason": "input_done", "turns": 1}
    assert not any(isinstance(event, Audio) for event in events[3])


def test_an_open_turn_gives_the_three_withheld_codes_at_the_end(scripted):
    script(scripted, [["<|speak|>", 65, "<|chunk_eos|>"]])
    events, ending = run(scripted, small(1))
    assert ending["truncated"] and len(sound(events[1:])) == 3 * 960
    assert len(sound(events)) == len(sound(events[:1])) + 3 * 960


def test_the_audio_encoder_is_emptied_by_upstream_after_half_a_minute(snapshot):
    events, _ = run(load(snapshot, frames="first", **LISTENING), small(31))
    (reset,) = metrics(events, "apm_reset")
    assert 1400 <= reset["positions_before"] < 1500


def test_a_window_of_attention_is_taken_out(plain):
    config = plain._parts.duplex.model.llm.model.config
    assert config.sliding_window is None
    assert plain.identity.detail["sliding_window_unset"] == 4096


def test_reading_that_fails_is_an_error(plain):
    units = small(2)
    plain.open(sample(units), lambda event: None)
    plain._parts.duplex.set_break_event()
    with pytest.raises(RuntimeError, match="streaming_prefill failed"):
        plain.push(units[0])
    plain.close()
    run(plain, small(1))  # and the next sample begins anew


def test_a_vocoder_without_a_cache_is_an_error_not_a_warning(plain):
    units = small(1)
    plain.open(sample(units), lambda event: None)
    plain._parts.duplex.token2wav_initialized = False
    with pytest.raises(RuntimeError, match="vocoder has no cache"):
        plain.push(units[0])
    plain.close()


@pytest.mark.parametrize(
    "old, new, words",
    [
        ("max_slice_nums: Union", "slices: Union", "streaming_prefill takes no max_slice_nums"),
        ("self.current_turn_ended = True", "pass", "duplex object has no current_turn_ended"),
        ("def reset_session(", "def restart(", "has no reset_session"),
    ],
)
def test_code_that_lacks_what_the_runner_calls_is_refused(snapshot, tmp_path, old, new, words):
    folder = shutil.copytree(snapshot, tmp_path / f"other code {hash(old)}")
    path = folder / "modeling_minicpmo.py"
    changed = path.read_text("utf-8").replace(old, new)
    path.write_text(changed.replace("self.reset_session(reset_token2wav_cache=True)", "pass", 1))
    with pytest.raises(HfdError, match=words):
        load(folder)


def test_a_tokenizer_without_a_token_of_the_grammar_is_refused(snapshot, tmp_path):
    folder = shutil.copytree(snapshot, tmp_path / "other tokens")
    path = folder / "tokenizer_config.json"
    config = json.loads(path.read_text("utf-8"))
    config["added_tokens_decoder"][str(tiny.IDS["<|turn_eos|>"])]["content"] = "<|turn_end|>"
    path.write_text(json.dumps(config))
    with pytest.raises(HfdError, match=r"its tokenizer has no <\|turn_eos\|>"):
        load(folder)
