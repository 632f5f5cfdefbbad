"""The witness's log: signed lines, each with the hash of the line before it (docs/formats.md).

Workers of many nodes append to one file. Each takes the file's lock, which NFS and Lustre (mounted
with ``flock``) carry from node to node.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization as keys
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from hfd.errors import HfdError
from hfd.files import canonical_json, sha256_bytes
from hfd.jobs.witness import KEY, LOG, PUBLIC_KEY

_FIRST_PREV = "0" * 64
_TAIL_BYTES = 2**20
_TRIES = 3
_MOST_STAMP_BYTES = 2**16


def make_key(folder: Path) -> str:
    """Make the key pair of a witness; return its public half as 64 hexadecimal digits.

    Raises:
        HfdError: there is one already, or the folder cannot be written.
    """
    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(keys.Encoding.PEM, keys.PrivateFormat.PKCS8, keys.NoEncryption())
    public = key.public_key().public_bytes(
        keys.Encoding.PEM, keys.PublicFormat.SubjectPublicKeyInfo
    )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with os.fdopen(
            os.open(folder / KEY, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
        ) as f:
            f.write(secret)
        (folder / PUBLIC_KEY).write_bytes(public)
    except FileExistsError as error:
        raise HfdError(
            "is there already", file=folder / KEY, remedy="Use it, or name another folder"
        ) from error
    except OSError as error:
        raise HfdError(f"cannot be written: {error.strerror}", file=folder) from error
    return _public_hex(key)


def append(folder: Path, entry: dict[str, Any], tsa: str = "") -> None:
    """Add one entry to the folder's log, signed and on the disk when this returns.

    Args:
        folder: with the key.
        entry: what is witnessed.
        tsa: address of an RFC 3161 time-stamp service, or empty.

    Raises:
        HfdError: key, log or service cannot be used; the log is then as it was.
    """
    key = _read_key(folder / KEY)
    with _locked(folder / LOG) as handle:
        seq, prev, torn = _last(handle)
        if torn:  # a writer that died in its line; it counts as no entry
            _write(handle, b"\n")
        if prev == _FIRST_PREV:
            header = {"kind": "log", "schema": "hfd-witness/1", "key": _public_hex(key)}
            prev = _add(handle, header, seq, prev, key, tsa)
            seq += 1
        _add(handle, entry, seq, prev, key, tsa)


def _add(
    handle: int, entry: dict[str, Any], seq: int, prev: str, key: Ed25519PrivateKey, tsa: str
) -> str:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = entry | {"seq": seq, "prev": prev, "time": now}
    line["sig"] = key.sign(canonical_json(line).encode()).hex()
    if tsa:
        line["stamp"] = base64.b64encode(_stamp(tsa, canonical_json(line).encode())).decode()
    data = canonical_json(line).encode()
    _write(handle, data + b"\n")
    return sha256_bytes(data)


def _write(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]
    os.fsync(handle)


@contextmanager
def _locked(log: Path) -> Iterator[int]:
    """The log, opened to append, for this process alone."""
    handle = -1
    try:
        handle = os.open(log, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        fcntl.lockf(handle, fcntl.LOCK_EX)
        yield handle
    except OSError as error:
        raise HfdError(
            f"cannot be written: {error.strerror}",
            file=log,
            remedy="Mend permissions, space or the file system's locks",
        ) from error
    finally:
        if handle >= 0:
            os.close(handle)


def _last(handle: int) -> tuple[int, str, bool]:
    """The next line's number, the last line's hash, and whether a torn line comes after it."""
    size = os.fstat(handle).st_size
    data = os.pread(handle, _TAIL_BYTES, max(0, size - _TAIL_BYTES))
    *lines, rest = data.split(b"\n")
    for line in reversed(lines):
        with suppress(ValueError, TypeError, KeyError):
            return json.loads(line)["seq"] + 1, sha256_bytes(line), bool(rest)
    return 0, _FIRST_PREV, bool(rest)


def _stamp(url: str, data: bytes) -> bytes:
    """A time-stamp service's answer for these bytes (RFC 3161, SHA-256), as DER."""
    from rfc3161_client import HashAlgorithm, TimestampRequestBuilder, decode_timestamp_response

    builder = TimestampRequestBuilder().data(data).hash_algorithm(HashAlgorithm.SHA256)
    # Without certificates a stamp is small, and OpenSSL's services send chains that are no DER.
    query = builder.cert_request(cert_request=False).build()
    request = urllib.request.Request(
        url, query.as_bytes(), {"Content-Type": "application/timestamp-query"}
    )
    for left in reversed(range(_TRIES)):
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                body = answer.read(_MOST_STAMP_BYTES)
            if decode_timestamp_response(body).tst_info.nonce != query.nonce:
                raise ValueError("its answer is to another request")
            return body
        except (OSError, ValueError) as error:
            if not left:
                raise HfdError(
                    f"the time-stamp service gave no stamp: {error}", field="witness_tsa"
                ) from error
            time.sleep(2)
    raise AssertionError("unreachable")


def _read_key(path: Path) -> Ed25519PrivateKey:
    try:
        key = keys.load_pem_private_key(path.read_bytes(), None)
    except (OSError, ValueError, TypeError) as error:
        raise HfdError(f"cannot be read: {error}", file=path) from error
    if not isinstance(key, Ed25519PrivateKey):
        raise HfdError("is no Ed25519 key", file=path)
    return key


def _public_hex(key: Ed25519PrivateKey) -> str:
    return key.public_key().public_bytes(keys.Encoding.Raw, keys.PublicFormat.Raw).hex()
