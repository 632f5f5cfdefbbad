"""Stock qwen-tts with a tiny random snapshot; needs the environment of envs/tts.yaml.

Without qwen-tts the folder is left out.
"""

from importlib.util import find_spec

import pytest

if find_spec("qwen_tts") is None:
    collect_ignore_glob = ["test_*.py"]
else:
    import torch

    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def snapshot(tmp_path_factory):
    """Folder of the tiny snapshot."""
    from make_tts_random import make_snapshot

    return make_snapshot(tmp_path_factory.mktemp("tts") / "tiny")


@pytest.fixture(scope="session", params=["sdpa", "eager"])
def loaded(request, snapshot):
    """Model and tokenizer, with each kind of attention."""
    from hfd.models.tts.loading import load_model

    return load_model(snapshot, "cpu", request.param)
