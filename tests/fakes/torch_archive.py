"""Write what ``torch.save`` writes, without torch: a zip of one protocol 2 pickle and raw data."""

from __future__ import annotations

import io
import struct
import zipfile
from typing import Any

import numpy as np


def torch_archive(value: Any) -> bytes:
    """`value` (dicts, lists, text, numbers, float16 arrays) as a ``torch.save`` archive."""
    storages: list[bytes] = []
    return archive_of(b"\x80\x02" + _pickled(value, storages) + b".", storages)


def archive_of(pickled: bytes, storages: list[bytes]) -> bytes:
    """An archive around any pickle."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/byteorder", "little")
        for number, storage in enumerate(storages):
            archive.writestr(f"archive/data/{number}", storage)
        archive.writestr("archive/version", "3\n")
    return out.getvalue()


def first_storage(archive: bytes) -> bytes:
    """Raw bytes of the first tensor in an archive."""
    with zipfile.ZipFile(io.BytesIO(archive)) as files:
        inside = next(name for name in files.namelist() if name.endswith("/data/0"))
        return files.read(inside)


def _pickled(value: Any, storages: list[bytes]) -> bytes:
    if value is None:
        return b"N"
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if isinstance(value, int):
        return b"J" + struct.pack("<i", value)
    if isinstance(value, str):
        text = value.encode()
        return b"X" + struct.pack("<I", len(text)) + text
    if isinstance(value, list):
        return b"](" + b"".join(_pickled(item, storages) for item in value) + b"e"
    if isinstance(value, dict):
        pairs = (_pickled(part, storages) for pair in value.items() for part in pair)
        return b"}(" + b"".join(pairs) + b"u"
    return _tensor(value, storages)


def _tensor(array: np.ndarray, storages: list[bytes]) -> bytes:
    assert array.dtype == np.float16
    storages.append(array.tobytes())
    key = str(len(storages) - 1)
    strides = [stride // array.itemsize for stride in array.strides]

    def numbers(items: Any) -> bytes:
        return b"(" + b"".join(_pickled(int(item), storages) for item in items) + b"t"

    storage = (
        b"("
        + _pickled("storage", storages)
        + b"ctorch\nHalfStorage\n"
        + _pickled(key, storages)
        + _pickled("cpu", storages)
        + _pickled(array.size, storages)
        + b"tQ"
    )
    return (
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + storage
        + _pickled(0, storages)
        + numbers(array.shape)
        + numbers(strides)
        + b"\x89ccollections\nOrderedDict\n)RtR"
    )
