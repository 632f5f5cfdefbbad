"""hfd-duplex: full-duplex models over HFD-1024, sample by sample, verifiable.

Imports run one way: data -> stream -> models -> work; judge reads data and the result files.
"""

__version__ = "0.1.0"
