"""Gander's public online runner on a tiny random model, under the module (opt-in).

Needs HFD_PEERS with clones of Omni-Interaction-Gander/Omni-Interaction-Agent and of those that
MiniCPM-o's peer tests need, and their environment. The package's own loader wants a GPU and real
checkpoints, so the model is put together here as `mcpmft.infer.common` does it.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from hfd.duplex.events import Audio
from hfd.models.gander.checkpoint import PACKAGE, Release
from hfd.models.gander.model import Gander
from hfd.models.minicpmo.checkpoint import VOICE, Snapshot
from tests.models.minicpmo.helpers import (
    comparable,
    controls,
    make_units,
    metrics,
    run,
    sound,
)
from tests.tiny import minicpmo as tiny

PEERS = Path(os.environ.get("HFD_PEERS", "/none"))
CODE = tiny.find_code(PEERS)
REPO = PEERS / "Omni-Interaction-Agent" / PACKAGE
HAS_ENVIRONMENT = all(importlib.util.find_spec(n) for n in ("torch", "transformers", "accelerate"))

pytestmark = [
    pytest.mark.peers,
    pytest.mark.skipif(
        CODE is None or not (REPO / "mcpmft/infer/online.py").is_file(),
        reason="no clones of the public code under HFD_PEERS",
    ),
    pytest.mark.skipif(not HAS_ENVIRONMENT, reason="not in the environment of envs/minicpmo.yaml"),
]
BACKCHANNEL = "<|backchannel|>"


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """MiniCPM-o's files; one thread, and the code's cache of this process."""
    import torch

    from hfd.models.minicpmo import loader

    torch.set_num_threads(1)
    tiny.use_stand_in_vocoder()
    loader.use_own_module_cache()
    folder = tmp_path_factory.mktemp("gander") / "MiniCPM-o base"
    tiny.write_files(folder, CODE)
    if str(REPO) not in sys.path:
        sys.path.insert(0, str(REPO))
    return folder


def bundle(folder: Path) -> SimpleNamespace:
    """Model, tokenizer and processor, with the one token that Gander adds."""
    import torch
    from transformers import AutoProcessor, AutoTokenizer

    model = tiny.random_model(folder, torch.float32, "cpu")
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=True)
    tokenizer.add_special_tokens({"additional_special_tokens": [BACKCHANNEL]})
    model.llm.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    processor = AutoProcessor.from_pretrained(folder, trust_remote_code=True)
    processor.tokenizer = tokenizer
    model.processor = processor
    return SimpleNamespace(model=model, tokenizer=tokenizer, processor=processor)


class TinyGander(Gander):
    """The module's runner over the public online runner and a tiny random model."""

    def load_parts(self):
        from hfd.models.gander import loader

        folder = Path(self.settings.model_path)
        package = {"mcpmft.infer.online": importlib.import_module("mcpmft.infer.online")}
        release = Release(REPO, folder, folder, None)
        snapshot = Snapshot(folder, folder / VOICE)
        return loader.make_parts(self.settings, snapshot, release, bundle(folder), package, None)


def load(base, **settings):
    places = {"model_path": str(base), "repo_path": "clone", "gander_path": "none"}
    model = TinyGander({**places, "device": "cpu", **settings})
    model.identity = model.load()
    return model


def small(count, **more):
    return make_units(count, width=96, height=64, **more)


def script(model, units):
    """Let the model decode these ids, by name, unit by unit; listening after them."""
    import torch

    tokenizer = model._parts.duplex.tokenizer
    ids = [
        n if isinstance(n, int) else tokenizer.convert_tokens_to_ids(n) for u in units for n in u
    ]
    left = iter(ids)

    def decode(*_, **__):
        return torch.tensor([next(left, tiny.IDS["<|listen|>"])])

    model._parts.duplex.decoder.decode = decode


def test_an_interrupt_ends_the_turn_and_a_backchannel_speaks(base):
    model = load(base)
    script(
        model,
        [
            ["<|listen|>"],
            ["<|speak|>", 65, 66, "<|chunk_eos|>"],
            ["<|speak|>", 67, "<|chunk_eos|>"],
            ["<|interrupt|>"],
            [BACKCHANNEL, 72, "<|chunk_eos|>"],
            ["<|interrupt|>"],
        ],
    )
    events, ending = run(model, small(6))
    assert controls(events) == [
        *(["listen"], ["speak"], [], ["interrupt", "turn_end", "listen"]),
        *(["speak"], ["interrupt", "turn_end", "listen"], []),
    ]
    assert ending["interruptions"] == 2 and not ending["truncated"]
    assert [answer["codes"] for answer in metrics(events, "answer")] == [0, 50, 50, 0, 50, 0]
    assert len(sound(events[1:2])) == 50 * 960  # two seconds, given whole
    assert not any(isinstance(event, Audio) for event in events[3] + events[-1])


@pytest.mark.parametrize("acceleration", ["eager", "graphs"])
def test_a_b_a_gives_a_twice_bit_for_bit(base, acceleration):
    model = load(base, acceleration=acceleration)
    first, _ = run(model, small(3), seed=5)
    run(model, small(2, seed=4), seed=6)
    again, _ = run(model, small(3), seed=5)
    assert [comparable(unit) for unit in again] == [comparable(unit) for unit in first]


def test_captured_steps_say_what_the_plain_loop_says(base):
    outcomes = [
        run(load(base, acceleration=kind), small(4), seed=7) for kind in ("eager", "graphs")
    ]
    plain, faster = ([comparable(unit) for unit in events] for events, _ in outcomes)
    assert plain == faster
