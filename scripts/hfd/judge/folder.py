"""One result folder, read and checked by itself: what anyone can verify without the workflow."""

from __future__ import annotations

import filecmp
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from hfd.judge import clock_check, identity_check, input_check, result_check
from hfd.judge.documents import Document, read_document
from hfd.judge.findings import FILES, PROVENANCE, RESULT, TRACE, WAV, Finding
from hfd.judge.shared_times import check_sessions
from hfd.judge.trace import Trace, read_trace
from hfd.judge.wav_check import Chunk, Wav, check_wav, read_wav, rebuild


@dataclass(frozen=True)
class Folder:
    """What one result folder holds, as far as it can be read.

    Attributes:
        sample_id: the folder's name.
        result, provenance: the JSON files.
        trace: the lines.
        wav: the saved sound, or None.
        wav_sha: SHA-256 of the wav file, or None.
        track: the sound that the trace describes (int16), or None without a usable trace.
        chunks: pieces of the track that were played, in order.
        findings: everything that is wrong with the folder by itself.
    """

    sample_id: str
    result: Document
    provenance: Document
    trace: Trace
    wav: Wav | None
    wav_sha: str | None
    track: np.ndarray | None
    chunks: list[Chunk]
    findings: list[Finding]

    @property
    def model(self) -> str | None:
        return self.result.value.get("model")

    @property
    def text(self) -> str:
        """All that was written."""
        return "".join(line["delta"] for _, line in self.trace.of("text"))

    @property
    def whole(self) -> bool:
        """Whether all four files can be relied on."""
        return self.result.usable and self.provenance.usable and self.track is not None


def read_folder(path: Path) -> Folder:
    """Read ``results/<model>/<id>/`` and run every check that needs nothing else.

    Problems become findings; nothing raises.
    """
    result, findings = read_document(path, RESULT, "result.schema.yaml")
    provenance, more = read_document(path, PROVENANCE, "provenance.schema.yaml")
    findings += more
    if provenance.usable:
        findings += identity_check.check_identity(provenance)
    wav, more = read_wav(path / WAV)
    findings += more
    wav_sha = wav.sha256 if wav else None
    trace = read_trace(path / TRACE)
    findings += trace.findings
    track: np.ndarray | None = None
    chunks: list[Chunk] = []
    findings += _check_extent(trace)
    if trace.header and not trace.findings:  # nothing can be told from a damaged trace
        track, chunks, more = rebuild(trace)
        findings += more
        for check in _TRACE_CHECKS:
            findings += check(trace)
        if wav is not None:
            findings += check_wav(wav, track, chunks, trace.header)
        if result.usable:
            findings += result_check.check_result(result, trace, track, chunks)
            if not any(finding.rule == "A4" for finding in findings):
                findings += result_check.check_compute(result, trace)
        if provenance.usable:
            findings += result_check.check_provenance(provenance, result, trace, wav, wav_sha)
        if provenance.usable and result.usable:
            findings += check_sessions(trace, result, provenance)
        findings += _check_name(path.name, trace)
    return Folder(path.name, result, provenance, trace, wav, wav_sha, track, chunks, findings)


def _check_extent(trace: Trace) -> list[Finding]:
    """A2: a header that claims far more media than was sent; nothing is built to its measure."""
    media = trace.header.get("media_samples", 0)
    sent = sum(line["samples"] for _, line in trace.of("input"))
    if 2 * sent >= media or trace.findings:
        return []
    message = f"only {sent / 16_000:.2f} s of input for {media / 16_000:.2f} s of media"
    trace.findings.append(Finding("A2", TRACE, message, 1))
    return trace.findings[-1:]


_TRACE_CHECKS = (
    result_check.check_end,
    clock_check.check_times,
    input_check.check_input,
    input_check.check_pacing,
    input_check.check_dependency,
)


def _check_name(name: str, trace: Trace) -> list[Finding]:
    if trace.header["sample_id"] == name:
        return []
    other = trace.header["sample_id"]
    return [Finding("A16", TRACE, f"is the trace of {other!r}, in the folder of {name!r}", 1)]


def differs_from_store(path: Path, store: Path) -> list[Finding]:
    """A16: a published file must be the file that the worker wrote."""
    if not store.is_dir():
        return []
    return [
        Finding("A16", name, "is not the file that the worker wrote (work/<model>/store)")
        for name in FILES
        if (store / name).is_file()
        and (path / name).is_file()
        and not filecmp.cmp(store / name, path / name, shallow=False)
    ]


def foreign_folders(results: Path, known: Set[str]) -> list[str]:
    """Folders in a model's results that no sample of `known` asked for."""
    if not results.is_dir():
        return []
    found = (path.name for path in results.iterdir() if path.is_dir())
    return sorted(name for name in found if name not in known and not name.startswith("."))
