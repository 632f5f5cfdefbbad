"""Read result.json and provenance.json and hold them against their schemas."""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from hfd.judge.findings import Finding
from hfd.judge.plain_files import MOST_DOCUMENT_BYTES, NotPlain, odd_value, read_plain

_MARK = "\N{OBJECT REPLACEMENT CHARACTER} here"
_SCHEMAS = Path(__file__).resolve().parents[3] / "workflow" / "schemas"


@dataclass(frozen=True)
class Document:
    """One JSON file of a result folder.

    Attributes:
        name: file name.
        value: the object; empty where the file cannot be used.
        sha256: of the file's bytes; empty where it cannot be read.
        usable: whether the schema holds, so that other checks may rely on the fields.
    """

    name: str
    value: dict[str, Any]
    sha256: str
    usable: bool

    def line_of(self, *path: str | int) -> int | None:
        """Line on which a field stands in the file's own layout, from 1; None if it is absent."""
        if not path:
            return None
        marked = json.loads(json.dumps(self.value))
        place = marked
        try:
            for key in path[:-1]:
                place = place[key]
            place[path[-1]]  # absent fields have no line
            place[path[-1]] = _MARK
        except (KeyError, IndexError, TypeError):
            return self.line_of(*path[:-1])
        before = layout(marked).split(_MARK)[0]
        return before.count("\n") + 1


def layout(value: Any) -> str:
    """The one way in which the workflow writes readable JSON."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def read_document(folder: Path, name: str, schema: str) -> tuple[Document, list[Finding]]:
    """Read ``folder/name``; every problem is a finding of A16 with the line it stands on."""
    try:
        data = read_plain(folder / name, MOST_DOCUMENT_BYTES)
    except NotPlain as error:
        return Document(name, {}, "", False), [Finding("A14", name, str(error))]
    digest = hashlib.sha256(data).hexdigest()
    nothing = Document(name, {}, digest, False)
    try:
        text = data.decode("utf-8")
        value = json.loads(text, parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        return nothing, [Finding("A16", name, "is not UTF-8", line)]
    except json.JSONDecodeError as error:
        return nothing, [Finding("A16", name, f"is no valid JSON ({error.msg})", error.lineno)]
    except (ValueError, RecursionError) as error:
        return nothing, [Finding("A16", name, str(error))]
    odd = odd_value(value)
    if odd:
        return nothing, [Finding("A16", name, f"cannot be used: {odd}")]
    document = Document(name, value if isinstance(value, dict) else {}, digest, True)
    findings = [
        Finding("A16", name, _sentence(error), document.line_of(*error.absolute_path))
        for error in sorted(_validator(schema).iter_errors(value), key=lambda e: str(e.json_path))
    ]
    if not findings and text != layout(value):
        return document, [_layout_finding(name, text, layout(value))]
    return (nothing if findings else document), findings


def _layout_finding(name: str, text: str, expected: str) -> Finding:
    pairs = zip(text.split("\n"), expected.split("\n"), strict=False)
    line = next((n for n, (a, b) in enumerate(pairs, 1) if a != b), text.count("\n") + 1)
    return Finding(
        "A16", name, "was not written by the workflow (other layout or number form)", line
    )


@functools.cache
def _validator(schema: str) -> Draft202012Validator:
    return Draft202012Validator(yaml.safe_load((_SCHEMAS / schema).read_text(encoding="utf-8")))


def _sentence(error: Any) -> str:
    place = error.json_path.removeprefix("$.").removeprefix("$")
    return f"{place}: {error.message[:200]}" if place else error.message[:200]


def _no_constant(name: str) -> None:
    raise ValueError(f"holds {name}, which is no JSON number")
