"""A downloaded checkpoint, known from the headers of its safetensors files without loading it."""

from __future__ import annotations

import json
import math
import struct
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hfd.errors import HfdError
from hfd.files import canonical_json, sha256_bytes, sha256_file
from hfd.models.weights import sampled_file

DTYPES = {"BF16": "bfloat16", "F16": "float16", "F32": "float32"}
"""Types that weights of an unquantised checkpoint have."""
MAX_HEADER_BYTES = 512 * 2**20


def tensor_bytes(folder: Path, prefix: str) -> int:
    """Size of all tensors of a folder whose name starts with `prefix`; at least one must.

    Raises:
        HfdError: no such tensor, or a file that is shorter than its header says.
    """
    total = 0
    for file in _files(folder):
        for name, entry in _header(file).items():
            if name.startswith(prefix):
                start, end = entry["data_offsets"]
                total += end - start
    if not total:
        raise HfdError(
            f"holds no tensor whose name starts with {prefix!r}",
            file=folder,
            remedy="Download the checkpoint again, or name the folder that holds this part",
        )
    return total


def describe_weights(folder: Path) -> tuple[str, dict[str, int]]:
    """A hash that changes with the weights, and how many numbers of each type there are.

    Not every byte is read (70 GB): a sample of each file (`sampled_file`), ``config.json`` whole.

    Raises:
        HfdError: the weights are quantised (a type that is not in `DTYPES`), or damaged.
    """
    parts: dict[str, Any] = {"config.json": sha256_file(folder / "config.json")}
    counts: Counter[str] = Counter()
    for file in _files(folder):
        for name, entry in _header(file).items():
            if entry["dtype"] not in DTYPES:
                raise HfdError(
                    f"tensor {name!r} has the type {entry['dtype']}: quantised weights are "
                    "not comparable",
                    file=file,
                    remedy="Use the published bfloat16 checkpoint",
                )
            counts[DTYPES[entry["dtype"]]] += math.prod(entry["shape"])
        parts[file.name] = sampled_file(file)
    return sha256_bytes(canonical_json(parts).encode()), dict(counts)


def _files(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.safetensors"))


def _header(file: Path) -> Mapping[str, Any]:
    """Every tensor of a safetensors file: its type, shape and byte range."""
    try:
        with file.open("rb") as stream:
            (length,) = struct.unpack("<Q", stream.read(8))
            if length > MAX_HEADER_BYTES:
                raise ValueError(f"header of {length} bytes")
            entries: dict[str, Any] = json.loads(stream.read(length))
        entries.pop("__metadata__", None)
        expected = 8 + length + max((e["data_offsets"][1] for e in entries.values()), default=0)
    except (OSError, struct.error, ValueError, LookupError, TypeError, AttributeError) as error:
        raise HfdError(f"is no safetensors file ({error})", file=file) from error
    if file.stat().st_size != expected:
        raise HfdError(
            f"has {file.stat().st_size} bytes, its header says {expected}",
            file=file,
            remedy="Download it again",
        )
    return entries
