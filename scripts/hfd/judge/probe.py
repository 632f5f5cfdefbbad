"""A6, prefix invariance: the answer of a probe that ``prefix_probe_<model>`` has run."""

from __future__ import annotations

from pathlib import Path

from hfd.files import read_json
from hfd.judge.verdict import FAIL, PASS, Verdict, failed, passed, unknown


def probe_verdict(path: Path | None) -> Verdict:
    """The stored outcome of a probe, or not_evidenced where none was run."""
    if path is None or not path.is_file():
        return unknown("no probe was run: snakemake prefix_probe_<model> settles it")
    stored = read_json(path)
    make = {PASS: passed, FAIL: failed}.get(stored["status"], unknown)
    return make(stored["reason"], **stored["evidence"])
