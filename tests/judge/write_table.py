"""Write the tables of rules and of planted cheats into docs/audit.md.

Usage: ``PYTHONPATH=scripts python -m tests.judge.write_table``
"""

from tests.judge.test_cheats import DOCS, TABLES

if __name__ == "__main__":
    text = DOCS.read_text(encoding="utf-8")
    for name, table in TABLES.items():
        begin, end = f"<!-- {name} -->\n", f"\n<!-- /{name} -->"
        before, rest = text.split(begin)
        text = before + begin + table() + end + rest.split(end, 1)[1]
    DOCS.write_text(text, encoding="utf-8")
