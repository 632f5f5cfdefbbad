"""The witness's log, read by someone who did not write it, and held against a delivery.

The log says what became of every sample at the time at which it ended. What is delivered must be
the last that was finished, unchanged; what was tried besides is shown.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hfd.errors import HfdError
from hfd.files import canonical_json
from hfd.judge.plain_files import NotPlain, odd_value, read_plain

if TYPE_CHECKING:
    from hfd.judge.sample import Record

SCHEMA = "hfd-witness/1"
_FIRST_PREV = "0" * 64
STAMP_LATE_S = 300.0
"""So much may a service's time differ from the machine's: clocks nobody sets, slow answers."""


@dataclass(frozen=True)
class Entry:
    """One line of the log.

    Attributes:
        line: its number in the file, from 1.
        kind: ``begin``, ``done`` or ``error``.
        model, sample_id: whose.
        tail: ``done``: SHA-256 of the trace's last line.
        provenance_sha256: ``done``: of provenance.json, which names all other files' hashes.
        error: ``error``: what went wrong.
    """

    line: int
    kind: str
    model: str
    sample_id: str
    tail: str | None
    provenance_sha256: str | None
    error: str | None


@dataclass
class Log:
    """A log as it was read.

    Attributes:
        entries: of samples, in order.
        problems: what is wrong with the log itself.
        told: what a reader should know of it.
    """

    entries: list[Entry] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    told: list[str] = field(default_factory=list)


def read_log(path: Path, key: Path | None = None, certificates: Path | None = None) -> Log:
    """Read a log and check its chain, its signatures and, with `certificates`, its time stamps.

    Args:
        path: the log.
        key: the public key that the run's owner gave out before it (PEM).
        certificates: of the time-stamp service and its authorities (PEM).

    Raises:
        HfdError: a file cannot be read.
    """
    try:
        lines = read_plain(path).split(b"\n")
    except NotPlain as error:
        raise HfdError(str(error), file=path) from error
    if lines[-1] == b"":
        lines.pop()
    log = Log()
    signer = _Signer(log, key)
    stamps = _Stamps(certificates) if certificates else None
    prev, count = _FIRST_PREV, 0
    for number, line in enumerate(lines, 1):
        value = _parsed(line)
        if value is None:
            log.told.append(f"line {number} is torn: a writer died in it, it counts as no entry")
            continue
        if (value.get("seq"), value.get("prev")) != (count, prev):
            log.problems.append(f"line {number}: does not follow the line before it")
        first, seq = count == 0, value.get("seq")
        prev, count = hashlib.sha256(line).hexdigest(), seq + 1 if isinstance(seq, int) else count
        if not signer.signed(value, first):
            log.problems.append(f"line {number}: is not signed by the log's key")
        if stamps and (wrong := stamps.wrong(value)):
            log.problems.append(f"line {number}: {wrong}")
        if not first:
            log.entries.append(_entry(number, value))
    if not count:
        log.problems.append("holds no entry")
    log.told.append(f"{count} lines, the last one's hash is {prev}")
    return log


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
        good = isinstance(value, dict) and odd_value(value) is None
        return value if good and canonical_json(value).encode() == line else None
    except (ValueError, RecursionError):
        return None


def _entry(number: int, value: dict[str, Any]) -> Entry:
    names = ("kind", "model", "sample_id", "tail", "provenance_sha256", "error")
    return Entry(number, *(None if value.get(n) is None else str(value[n]) for n in names))  # type: ignore[arg-type]


class _Signer:
    """The key that every line must be signed with: the auditor's, or the one of the first line."""

    def __init__(self, log: Log, path: Path | None) -> None:
        self._log = log
        self._given = _public_key(path) if path else None
        self._key: Any = self._given

    def signed(self, value: dict[str, Any], first: bool) -> bool:
        if first:
            self._begin(value)
        unsigned = {name: value[name] for name in value if name not in ("sig", "stamp")}
        from cryptography.exceptions import InvalidSignature

        try:
            self._key.verify(bytes.fromhex(value["sig"]), canonical_json(unsigned).encode())
        except (InvalidSignature, ValueError, TypeError, KeyError, AttributeError):
            return False
        return True

    def _begin(self, header: dict[str, Any]) -> None:
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        if header.get("schema") != SCHEMA:
            self._log.problems.append(f"line 1: is no header of {SCHEMA}")
        if self._given is None:
            named = str(header.get("key"))
            try:
                self._key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(named))
            except ValueError:
                return
            self._log.told.append(f"signed by key {named}, which only the log itself names")


def _public_key(path: Path) -> Any:
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = serialization.load_pem_public_key(read_plain(path))
    except (NotPlain, ValueError) as error:
        raise HfdError(f"is no public key: {error}", file=path) from error
    if not isinstance(key, Ed25519PublicKey):
        raise HfdError("is no Ed25519 key", file=path)
    return key


class _Stamps:
    """Checks time stamps (RFC 3161) against the certificates that the auditor trusts."""

    def __init__(self, certificates: Path) -> None:
        from cryptography.x509 import load_pem_x509_certificates
        from rfc3161_client import VerifierBuilder

        try:
            found = load_pem_x509_certificates(read_plain(certificates))
        except (NotPlain, ValueError) as error:
            raise HfdError(f"holds no certificates: {error}", file=certificates) from error
        roots = [one for one in found if one.issuer == one.subject]
        others = [one for one in found if one not in roots]
        if not roots or not others:
            raise HfdError(
                "must hold the service's certificate and its authority's", file=certificates
            )
        self._verifiers = [
            VerifierBuilder(tsa_certificate=one, intermediates=others, roots=roots).build()
            for one in others
        ]

    def wrong(self, value: dict[str, Any]) -> str | None:
        """What is wrong with a line's stamp."""
        from rfc3161_client import decode_timestamp_response

        if "stamp" not in value:
            return "has no time stamp"
        unstamped = {name: value[name] for name in value if name != "stamp"}
        try:
            stamp = decode_timestamp_response(base64.b64decode(value["stamp"], validate=True))
            reason = self._refusal(stamp, canonical_json(unstamped).encode())
            late = (stamp.tst_info.gen_time - datetime.fromisoformat(value["time"])).total_seconds()
        except (ValueError, TypeError, KeyError) as error:
            reason, late = str(error), 0.0
        if reason:
            return f"its time stamp does not hold ({reason})"
        if abs(late) > STAMP_LATE_S:
            return f"says {value['time']}, but was stamped {late:+.0f} s from then"
        return None

    def _refusal(self, stamp: Any, data: bytes) -> str | None:
        """Why none of the service's certificates vouches for these bytes."""
        from rfc3161_client import VerificationError

        reason = None
        for verifier in self._verifiers:
            try:
                verifier.verify_message(stamp, data)
                return None
            except (VerificationError, ValueError) as error:
                reason = str(error)
        return reason


def held_against(
    log: Log, records: Sequence[Record], only: str | None = None
) -> tuple[list[str], list[str]]:
    """What contradicts the log, and which samples were tried more than once.

    Args:
        log: of the run.
        records: what verify_results.py found, of one model.
        only: the sample whose folder alone is at hand, or None for a whole delivery.
    """
    models = {r.facts["identity"]["model"] for r in records if "identity" in r.facts}
    if len(models) != 1:
        return [f"the results name {len(models)} models, no entry can be looked up"], []
    by_id: dict[str, list[Entry]] = defaultdict(list)
    for entry in log.entries:
        if entry.model in models and only in (None, entry.sample_id):
            by_id[entry.sample_id].append(entry)
    delivered = {record.sample_id: record for record in records if record.verdicts}
    problems: list[str] = []
    for sample_id in dict.fromkeys([*delivered, *by_id]):
        problems += _contradictions(sample_id, by_id[sample_id], delivered.get(sample_id))
    return problems, list(_attempts(by_id))


def _contradictions(sample_id: str, entries: list[Entry], record: Record | None) -> Iterator[str]:
    done = [entry for entry in entries if entry.kind == "done"]
    if record is None:
        how = f"finished (line {done[-1].line})" if done else f"begun (line {entries[-1].line})"
        yield f"{sample_id}: was {how}, but is not delivered"
        return
    if not done:
        yield f"{sample_id}: is delivered, but was never finished"
        return
    if "tail" not in record.facts:
        yield f"{sample_id}: cannot be read, but was finished (line {done[-1].line})"
        return
    same = [entry for entry in done if entry.tail == record.facts.get("tail")]
    if not same:
        yield f"{sample_id}: was changed: its trace is not the one that was finished (line " + (
            ", ".join(str(entry.line) for entry in done) + ")"
        )
    elif same[-1].provenance_sha256 != record.facts.get("provenance_sha256"):
        yield f"{sample_id}: was changed: provenance.json is not what was finished (line " + (
            f"{same[-1].line})"
        )
    elif same[-1] is not done[-1]:
        yield (
            f"{sample_id}: was picked: line {same[-1].line} is delivered, "
            f"but line {done[-1].line} was finished after it"
        )


def _attempts(by_id: dict[str, list[Entry]]) -> Iterator[str]:
    """Samples that were begun more than once, or failed: everything that became of them."""
    for sample_id, entries in by_id.items():
        begun = [entry for entry in entries if entry.kind == "begin"]
        if len(begun) < 2 and all(entry.kind != "error" for entry in entries):
            continue
        shown = ", ".join(
            f"{entry.kind} (line {entry.line}{f': {entry.error}' if entry.error else ''})"
            for entry in entries
        )
        yield f"{sample_id}: {len(begun)} attempts: {shown}"
