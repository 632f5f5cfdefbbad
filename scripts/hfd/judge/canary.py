"""Canaries: does a model still know what was said or shown to it seconds before?

Needs nothing but a model's environment; hfd.judge.canary_summary counts the answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hfd.data.canary import forms
from hfd.judge.trace import read_trace


def answer_to(folder: Path, canary: Mapping[str, Any]) -> dict[str, Any]:
    """What a result folder answers to a canary.

    Args:
        folder: the run's result folder.
        canary: the manifest row's: ``kind``, ``word``, ``asked_s``.

    Returns:
        ``right``: whether the text from the question on has the word, and no other that could have
        been the answer; what was said; and the chance of a guess.
    """
    trace = read_trace(folder / "trace.jsonl.gz")
    said = "".join(line["delta"] for _, line in trace.of("text") if line["t"] >= canary["asked_s"])
    known = forms(canary["kind"])
    return {
        "kind": canary["kind"],
        "word": canary["word"],
        "right": named(said, known) == {canary["word"]},
        "said": said[-300:],
        "chance": round(1 / len(known), 4),
    }


def named(text: str, known: Mapping[str, Sequence[str]]) -> set[str]:
    """Which of the words a text has: whole words where they are English, anywhere if Chinese."""
    words = set(re.findall(r"[a-z]+", text.lower()))
    return {
        word
        for word, others in known.items()
        if any(form in words if form.isascii() else form in text for form in others)
    }
