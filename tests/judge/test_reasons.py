"""The report's Chinese reasons are those of the rules: none lacks one, none is left over."""

import ast
import json
import re
from collections import defaultdict
from pathlib import Path

import audit
from hfd.errors import LOST_AS
from hfd.judge.report.pages import ASSETS

JUDGE = Path(audit.__file__).parent / "hfd" / "judge"
ELSEWHERE = {"definitions.py", "witness.py", "verification.py"}
"""What they say stands in tables and on the command line of verify_results.py, not on the page."""
SOURCES = [path for path in sorted(JUDGE.rglob("*.py")) if path.name not in ELSEWHERE]
SOURCES.append(JUDGE.parent / "probes" / "changed_sound.py")
ANSWERS = {"passed", "failed", "unknown", "by_findings", "over_set", "Finding"}
ANSWERS |= {"_wrong", "_broken", "NotPlain", "ValueError"}
RETURNED = {"str", "str | None", "Reference | str", "tuple[bytes, str | None]"}
FOREIGN = {"a list of {}", "{} % ({})", "{}{} ({})", "{} / {} / {} ({})", "{} ({} CPUs)"}
FOREIGN |= {"a field is missing", "its words have no times"}
FOREIGN |= {"{}: times are shared, and left out here"}
"""Cells of the measurement card, facts of a machine, an error of another file: no reasons."""


def templates(node):
    """Texts an expression may give, with {} for what is filled in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.JoinedStr):
        return ["".join(p.value if isinstance(p, ast.Constant) else "{}" for p in node.values)]
    if isinstance(node, ast.IfExp):
        return templates(node.body) + templates(node.orelse)
    if isinstance(node, ast.Tuple):  # (text so far, what is wrong with the rest)
        return [text for part in node.elts for text in templates(part)]
    return []


def reasons_of(function):
    """Texts that a function gives as a reason, or returns."""
    values = defaultdict(list)
    for node in ast.walk(function):
        if isinstance(node, ast.Assign | ast.AugAssign):
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            values[ast.unparse(target)] += templates(node.value)
    returned = ast.unparse(function.returns) if function.returns else None
    found = []
    for node in ast.walk(function):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ANSWERS:
            for part in node.args:
                found += templates(part) + values[ast.unparse(part)]
        elif isinstance(node, ast.Return) and node.value and returned in RETURNED:
            found += templates(node.value)
    return found


def table():
    """English to Chinese, as the page holds it."""
    text = (ASSETS / "reasons.js").read_text(encoding="utf-8")
    start = text.index("[\n", text.index("const REASONS_ZH"))
    pairs = json.loads(text[start : text.index("\n];", start) + 2])
    assert len({english for english, _ in pairs}) == len(pairs)
    return {re.sub(r"\{[=#@]\}", "{}", english): chinese for english, chinese in pairs}


def known(text, rows):
    """Whether the table has it: alone, after a file's name, or as what follows another text."""
    return bool({text, text.removeprefix("{}: "), f"{{}}{text}"} & rows.keys())


def test_every_reason_in_the_rules_source_has_a_chinese_text():
    rows = table()
    wanted = {
        (path.name, text)
        for path in SOURCES
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef)
        for text in reasons_of(function)
        if " " in text.strip() and text not in FOREIGN and text.strip("{}:; ")
    }
    assert len(wanted) > 150
    assert sorted(pair for pair in wanted if not known(pair[1], rows)) == []


def test_no_chinese_text_outlives_the_reason_it_translates():
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in SOURCES]
    said = {text for tree in trees for node in ast.walk(tree) for text in templates(node)}
    # By ", ".join and the like.
    joined = {"{}, {}", "{} and {}", "{}; {}", "{} (and {} more)", "{}: {} (and {} more)"}
    joined |= {text.removeprefix("{}: ") for text in said}
    joined |= {f"{{}} {status.replace('_', ' ')}" for status in (*LOST_AS, "missing", "ineligible")}
    left = [row for row in table() if not {row, row.removeprefix("{}")} & (said | joined)]
    assert left == []


def test_what_is_filled_in_stays():
    for english, chinese in table().items():
        for n in range(english.count("{}")):
            assert f"{{{n + 1}}}" in chinese, english
