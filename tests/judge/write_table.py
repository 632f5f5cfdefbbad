"""Write the cheat × rule matrix into docs/audit.md.

Usage: ``PYTHONPATH=scripts python -m tests.judge.write_table``
"""

from tests.judge.test_cheats import DOCS, table

if __name__ == "__main__":
    text = DOCS.read_text(encoding="utf-8")
    begin, end = "<!-- cheats -->\n", "\n<!-- /cheats -->"
    before, rest = text.split(begin)
    DOCS.write_text(before + begin + table() + end + rest.split(end)[1], encoding="utf-8")
