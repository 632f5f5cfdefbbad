"""The kit of captured steps; needs torch alone, so any model's environment runs it."""

from importlib.util import find_spec

if find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]
