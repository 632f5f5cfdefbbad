"""Weight files known by a sample of their bytes: tens of gigabytes are not read a second time."""

from __future__ import annotations

from pathlib import Path

from hfd.files import sha256_bytes

BLOCKS, BLOCK_BYTES = 256, 16_384


def sampled_file(file: Path) -> list[int | str]:
    """What is hashed of a safetensors file: another training step shows in it.

    Returns:
        Its size in bytes, and SHA-256 over its header (names, shapes, types of all tensors) and
        `BLOCKS` blocks of `BLOCK_BYTES` bytes evenly spread over the tensors.
    """
    size = file.stat().st_size
    with file.open("rb") as stream:
        header = 8 + int.from_bytes(stream.read(8), "little")
        stream.seek(0)
        pieces = [stream.read(header)]
        for block in range(BLOCKS):
            stream.seek(header + (size - header) * block // BLOCKS)
            pieces.append(stream.read(BLOCK_BYTES))
    return [size, sha256_bytes(b"".join(pieces))]
