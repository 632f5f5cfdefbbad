"""No test is left out of `make test`: each heavy one lies where a line of test-heavy looks."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_heavy_test_is_run():
    recipe = re.search(r"^test-heavy:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.M)
    looked_at = re.findall(r"(tests/[\w/.]+)", recipe[1])
    heavy = [
        path.relative_to(ROOT).as_posix()
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        if "mark." + "heavy" in path.read_text(encoding="utf-8")
    ]
    assert heavy and [name for name in heavy if not name.startswith(tuple(looked_at))] == []
