"""hfd-duplex: full-duplex models over HFD-1024, sample by sample, verifiable.

Imports run one way: duplex and data lie below stream and models, jobs above both; judge reads
result files.
"""

__version__ = "0.2.0"
