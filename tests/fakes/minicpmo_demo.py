"""`make demo-minicpmo`: the public code on a tiny random model if it is at hand, else the double.

The public code is at hand if HFD_PEERS names a folder of clones (tests/tiny/minicpmo.py says which)
and the interpreter has transformers. Either way nothing that is said means anything.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hfd.duplex.model import Identity
from hfd.models.minicpmo.checkpoint import VOICE, Snapshot
from hfd.models.minicpmo.model import MiniCpmO
from hfd.models.minicpmo.session import Parts
from tests.fakes.minicpmo import DoubleMiniCpmO, Script, usual_units
from tests.tiny import minicpmo as tiny

CODE = tiny.find_code(Path(os.environ["HFD_PEERS"])) if os.environ.get("HFD_PEERS") else None
RUNS_THE_CODE = CODE is not None and find_spec("transformers") is not None


class TinyMiniCpmO(MiniCpmO):
    """The runner over upstream's code and a tiny random model."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__({"model_path": "tiny", "device": "cpu", **settings})

    def load_parts(self) -> Parts:
        import torch

        from hfd.models.minicpmo import loader

        assert CODE is not None
        torch.set_num_threads(1)
        loader.use_own_module_cache()
        tiny.use_stand_in_vocoder()
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "MiniCPM-o-tiny"
            tiny.write_files(folder, CODE, tiny.config() | {"max_position_embeddings": 40_960})
            model = tiny.random_model(folder, torch.float32, "cpu")
            snapshot = Snapshot(folder, folder / VOICE)
            made = loader.make_parts(self.settings, snapshot, model, (None, "random"))
            return replace(made, identity=_renamed(made.identity, "public code, RANDOM weights"))


class TalkativeDouble(DoubleMiniCpmO):
    """The double, with something to say in every part of a file."""

    script = Script(usual_units() * 10)

    def load_parts(self) -> Parts:
        made = super().load_parts()
        return replace(made, identity=_renamed(made.identity, "a double, no model at all"))


def _renamed(identity: Identity, what: str) -> Identity:
    return replace(identity, name=f"MiniCPM-o 4.5 ({what})")


MODEL = TinyMiniCpmO if RUNS_THE_CODE else TalkativeDouble
