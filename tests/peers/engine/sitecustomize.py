"""Loaded by every Python process with this folder on its path: says that there is a GPU.

The authors' talker refuses to start without one; everything that would run on it stands in
`vllm`, beside this file, and TALKER_DEVICE puts Code2Wav on the CPU.
"""

import importlib.abc
import sys


class _AfterTorch(importlib.abc.MetaPathFinder):
    """Patches torch once, when something is imported after it."""

    def find_spec(self, name, path=None, target=None):
        torch = sys.modules.get("torch")
        if torch is not None and hasattr(torch, "cuda") and hasattr(torch.cuda, "is_available"):
            torch.cuda.is_available = lambda: True
            sys.meta_path.remove(self)


sys.meta_path.insert(0, _AfterTorch())
