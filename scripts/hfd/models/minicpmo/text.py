"""Text of a turn from its token ids: whole characters only, control tags taken out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

UNFINISHED = "�"
"""What a decoder puts for bytes that are no whole character yet."""


@dataclass(frozen=True)
class Piece:
    """What some tokens added.

    Attributes:
        spoken: new characters of the spoken text.
        tagged: texts of the control tags that were closed, with the tag's name.
    """

    spoken: str
    tagged: tuple[tuple[str, str], ...] = ()


class TurnText:
    """The text of one turn, decoded anew with every unit.

    A character may lie across two units, so the turn is decoded as a whole and its unfinished end
    held back. Special tokens are no text. Text between control tags (``<delegate>`` and
    ``</delegate>``) is a message to somebody else: it is given back apart and never spoken.
    """

    def __init__(self, tokenizer: Any, tags: Iterable[str] = ()) -> None:
        self._tokenizer = tokenizer
        self._tags = TagFilter(tags)
        self._special = special_ids(tokenizer, self._tags.marks)
        self._ids: list[int] = []
        self._given = ""

    def add(self, ids: Iterable[int]) -> Piece:
        """Take tokens in; the text that they complete."""
        self._ids += [number for number in ids if number not in self._special]
        return self._tags.feed(self._new(whole_only=True))

    def end(self) -> Piece:
        """The turn is over: give what was held back."""
        last, rest = self._tags.feed(self._new(whole_only=False)), self._tags.end()
        self._ids.clear()
        self._given = ""
        return Piece(last.spoken + rest.spoken, last.tagged + rest.tagged)

    def _new(self, whole_only: bool) -> str:
        text = self._tokenizer.decode(self._ids, skip_special_tokens=False) if self._ids else ""
        if whole_only:
            text = text.rstrip(UNFINISHED)
        new, self._given = text[len(self._given) :], text
        return new


def special_ids(tokenizer: Any, keep: Iterable[str] = ()) -> frozenset[int]:
    """Ids of all special tokens but those whose text is in `keep`."""
    kept = set(keep)
    added = tokenizer.added_tokens_decoder
    return frozenset(
        number for number, token in added.items() if token.special and token.content not in kept
    )


class TagFilter:
    """Takes ``<tag>...</tag>`` out of a text that comes in pieces."""

    def __init__(self, tags: Iterable[str]) -> None:
        self._open = {f"<{tag}>": tag for tag in tags}
        self.marks = frozenset([*self._open, *(f"</{tag}>" for tag in self._open.values())])
        self._waiting = ""
        self._inside: str | None = None

    def feed(self, text: str) -> Piece:
        """The spoken part of the next piece, and the tags that it closes."""
        self._waiting += text
        spoken, tagged = "", []
        while True:
            wanted = list(self._open) if self._inside is None else [f"</{self._inside}>"]
            found = min(
                ((at, mark) for mark in wanted if (at := self._waiting.find(mark)) >= 0),
                default=None,
            )
            if found is None:
                break
            at, mark = found
            before, self._waiting = self._waiting[:at], self._waiting[at + len(mark) :]
            if self._inside is None:
                spoken += before
                self._inside = self._open[mark]
            else:
                tagged.append((self._inside, before))
                self._inside = None
        if self._inside is None:
            held = _length_of_begun(self._waiting, wanted)
            cut = len(self._waiting) - held
            spoken, self._waiting = spoken + self._waiting[:cut], self._waiting[cut:]
        return Piece(spoken, tuple(tagged))

    def end(self) -> Piece:
        """No more text: what waited for its tag to be completed is spoken, an open tag is not."""
        rest, inside = self._waiting, self._inside
        self._waiting, self._inside = "", None
        return Piece(rest) if inside is None else Piece("", ((inside, rest),))


def _length_of_begun(text: str, marks: Iterable[str]) -> int:
    """How many characters at the end of `text` may be the beginning of a mark."""
    longest = 0
    for mark in marks:
        for count in range(min(len(mark) - 1, len(text)), longest, -1):
            if text.endswith(mark[:count]):
                longest = count
                break
    return longest
