"""Words as they are spoken: one form for numbers, signs and names, and how far texts differ.

What was written ("21 km, 3.5 %, Anne") and what a recogniser heard ("twenty one kilometres",
"three point five percent", "Ann") are the same words.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from num2words import num2words

from hfd.judge.metrics import HAN

_SIGNS = {
    "%": " percent ",
    "&": " and ",
    "+": " plus ",
    "=": " equals ",
    "°": " degrees ",
    "@": " at ",
}
_MONEY = {"$": "dollars", "€": "euros", "£": "pounds"}
_SHORT = {
    "mr": "mister",
    "mrs": "missus",
    "dr": "doctor",
    "st": "saint",
    "vs": "versus",
    "km": "kilometers",
    "ok": "okay",
    "kilometres": "kilometers",
    "metres": "meters",
}
_NUMBER = re.compile(r"([$€£])?\s?(\d[\d,]*(?:\.\d+)?)(st|nd|rd|th)?\b")
_DIGIT = re.compile(r"\d")
_YEARS = range(1100, 2100)
_MOST_DIGITS = 15


def normalised(text: str) -> list[str]:
    """Words without case, punctuation and apostrophes, numbers and signs as words."""
    spelt = _NUMBER.sub(_number, text.lower())
    for sign, word in _SIGNS.items():
        spelt = spelt.replace(sign, word)
    found = re.findall(r"[^\W_]+", re.sub(r"['’]", "", spelt))
    return [_SHORT.get(word, word) for word in found]


def words_and_characters(text: str) -> list[str]:
    """Words in their spoken form, and Han characters one by one."""
    return [part for word in normalised(text) for part in (word if HAN.search(word) else [word])]


def _number(match: re.Match[str]) -> str:
    money, digits, ordinal = match.groups()
    digits = digits.replace(",", "")
    if len(digits) > _MOST_DIGITS:
        return " ".join(digits)
    whole, _, decimals = digits.partition(".")
    if decimals:
        spoken = f"{num2words(int(whole))} point {' '.join(decimals)}"
    elif ordinal:
        spoken = num2words(int(whole), to="ordinal")
    elif len(whole) == 4 and int(whole) in _YEARS and not money:
        spoken = num2words(int(whole), to="year")
    else:
        spoken = num2words(int(whole))
    spelt = _DIGIT.sub(lambda digit: num2words(int(digit[0])), spoken)
    spelt = re.sub(r"\W+", " ", spelt).replace(" and ", " ")
    return f" {spelt} {_MONEY[money] if money else ''} "


def sounds_alike(first: str, second: str) -> bool:
    """Whether two words differ at most in how they are spelt: names are written as they sound."""
    if first == second:
        return True
    short, long = sorted((first, second), key=len)
    spelling = len(short) >= 4 or long.startswith(short)
    return spelling and first[:1].isalpha() and _skeleton(first) == _skeleton(second)


_ALIKE = {
    "th": "0",
    "ph": "f",
    "ck": "k",
    "gh": "g",
    "q": "k",
    "c": "k",
    "z": "s",
    "y": "i",
}
"""Spellings of one sound."""


def _skeleton(word: str) -> str:
    """First sound and consonants: *Anne*, *Ann* and *An* are one."""
    for written, sound in _ALIKE.items():
        word = word.replace(written, sound)
    rest = re.sub(r"[aeiouhw]", "", word[1:])
    return re.sub(r"(.)\1+", r"\1", word[:1] + rest)


def word_error_rate(said: Sequence[str], heard: Sequence[str]) -> float:
    """Edits that turn `said` into `heard`, per word of `said`; may exceed 1."""
    return heard_share([(said, False)], heard)[0]


def heard_share(
    turns: Sequence[tuple[Sequence[str], bool]], heard: Sequence[str]
) -> tuple[float, int]:
    """Word error rate of what was heard against turns of which some were cut.

    Of a cut turn any number of words at its end may be unheard: they cost nothing and are not
    counted.

    Args:
        turns: each turn's words, and whether it was cut.
        heard: the recogniser's words.

    Returns:
        Edits per counted word (may exceed 1), and how many words were counted.
    """
    row: _Row = [(j, 0) for j in range(len(heard) + 1)]
    total = 0
    for words, cut in turns:
        total += len(words)
        ended = [(edits, left + len(words)) for edits, left in row]
        for passed, word in enumerate(words, 1):
            row = _next_row(row, word, heard)
            rest = len(words) - passed
            ended = [min(old, (e, n + rest)) for old, (e, n) in zip(ended, row, strict=True)]
        row = ended if cut else row
    edits, left = row[-1]
    return edits / max(1, total - left), total - left


_Row = list[tuple[int, int]]
"""For each number of heard words: the fewest edits so far, and the words left out with them."""


def _next_row(row: _Row, word: str, heard: Sequence[str]) -> _Row:
    """The row after one more written word."""
    edits, left = row[0]
    found = [(edits + 1, left)]
    for j, other in enumerate(heard, 1):
        edits, left = row[j - 1]
        alike = (edits + (not sounds_alike(word, other)), left)
        missing = (row[j][0] + 1, row[j][1])
        added = (found[-1][0] + 1, found[-1][1])
        found.append(min(alike, missing, added))
    return found
