"""DuplexOmni: runner.py is the model, slices.py one sample of it."""

from hfd.models.duplexomni.runner import MODEL

__all__ = ["MODEL"]
