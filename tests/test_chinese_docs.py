"""Chinese pages keep up with the English ones: the same code words, sections, rows and links."""

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "README.zh.md": "README.md",
    "docs/zh/data.md": "data/README.md",
    "docs/zh/cluster.md": "docs/cluster.md",
    "docs/zh/roma.md": "docs/roma.md",
}


def code_words(text):
    """Names of files, settings and commands in back quotes, without what a reader fills in."""
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    words = re.findall(r"`([^`\n]+)`", text)
    return {re.sub(r"\b[A-Z]{3,}\b|<[^>]*>|[^\x00-\x7f]+", "", word) for word in words}


def shape(text):
    """How many headings, table rows and lines of code a page has."""
    text = re.sub(r"^\[(English|中文说明)\].*$", "", text, flags=re.M)
    blocks = re.findall(r"```.*?```", text, flags=re.S)
    return Counter(
        headings=len(re.findall(r"^#+ ", text, flags=re.M)),
        rows=len(re.findall(r"^\|", text, flags=re.M)),
        code=sum(block.count("\n") for block in blocks),
    )


@pytest.mark.parametrize(("chinese", "english"), PAGES.items())
def test_a_chinese_page_says_what_the_english_one_says(chinese, english):
    ours, theirs = ((ROOT / name).read_text(encoding="utf-8") for name in (chinese, english))
    assert code_words(theirs) - code_words(ours) == set()
    assert shape(ours) == shape(theirs)


@pytest.mark.parametrize("page", [*PAGES, *PAGES.values()])
def test_links_lead_somewhere(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", text)
    here = [link for link in links if not link.startswith("http")]
    assert [link for link in here if not ((ROOT / page).parent / link).exists()] == []
