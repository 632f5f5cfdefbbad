"""Tests of the captured steps need torch: they run in ROMA's environment."""

from importlib.util import find_spec

if find_spec("torch") is None:
    collect_ignore = ["test_flow.py", "test_reader.py"]
else:
    import torch

    torch.set_num_threads(1)
