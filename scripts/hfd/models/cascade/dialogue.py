"""What the agent says: keyword rules and reflection in the manner of ELIZA, and no pretence.

It uses the words it heard, claims no knowledge, and admits that it sees no video frames.
"""

from __future__ import annotations

import random
import re

NOT_UNDERSTOOD = [
    "I am sorry, I did not understand that.",
    "I only know English, and I hear nothing but words.",
]
SPOKE_TOO_SOON = ["Sorry, I spoke too soon.", "Sorry, please forgive the interruption."]

_RULES: list[tuple[str, list[str]]] = [
    (r"(?:hello|hi|hey)\b.*", ["Hello. What is on your mind?"]),
    (
        r"(?:can|could|would|will) you (?:please )?(?P<rest>.+)",
        [
            "You would like me to {rest}. I can only listen and talk, for I see no pictures.",
            "You ask me to {rest}. Without eyes I cannot promise that.",
        ],
    ),
    (
        r"(?P<rest>(?:what|who|whose|which|where|when|why|how)\b.+)",
        [
            "You ask, {rest}? I see no pictures, so I do not know.",
            "You want to know, {rest}? I cannot see it, but I heard the question.",
        ],
    ),
    (
        r"(?P<rest>(?:is|are|was|were|do|does|did|has|have|had|may|should)\b.+)\?",
        [
            "You ask, {rest}? I cannot tell. What do you think yourself?",
            "You would like to know, {rest}? I have no eyes to check that.",
        ],
    ),
    (r"i (?:want|need|would like) (?P<rest>.+)", ["What would it mean to you to get {rest}?"]),
    (r"i (?:am|feel) (?P<rest>.+)", ["How long have you been {rest}?"]),
    (r"i (?:think|believe|guess) (?:that )?(?P<rest>.+)", ["What makes you think {rest}?"]),
    (r"(?:tell|show|give) me (?P<rest>.+)", ["I know nothing of {rest}, but I am listening."]),
    (r"because (?P<rest>.+)", ["Is it the real reason that {rest}?"]),
    (
        r"(?P<rest>.+)",
        [
            "You said, {rest}. Tell me more about {keyword}.",
            "I heard you say, {rest}. What does {keyword} mean to you?",
        ],
    ),
]

_AUXILIARIES = "can could did do have may must shall should will would"
_REFLECTIONS = {
    **{f"{verb} you": f"{verb} I" for verb in _AUXILIARIES.split()},
    "are you": "am I",
    "were you": "was I",
    "am i": "are you",
    "was i": "were you",
    "i am": "you are",
    "i'm": "you are",
    "i was": "you were",
    "you are": "I am",
    "you're": "I am",
    "you were": "I was",
    "i": "you",
    "me": "you",
    "my": "your",
    "mine": "yours",
    "myself": "yourself",
    "you": "me",
    "your": "my",
    "yours": "mine",
    "yourself": "myself",
}
_REFLECTED = re.compile(
    r"\b(" + "|".join(sorted(map(re.escape, _REFLECTIONS), key=len, reverse=True)) + r")\b"
)
_REPAIR = re.compile(r"\b(?:no,? wait|wait,? no|i mean|sorry|or rather|actually),?\s+(?=\S+ \S+)")
_TITLES = re.compile(r"\b(mr|mrs|ms|dr|st)\.")
_WORD = re.compile(r"[a-z0-9']+")
_COMMON = """
about after again always before been being could even ever every first from have herself himself
itself just like made make might mister more much myself never only other over rather shall should
some still than that their them themselves then there these they this those under unless until very
were what when where which while will with would your yourself
"""
"""Words that say nothing of a topic."""


class Dialogue:
    """One conversation; the seed picks among equal templates."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def answer(self, heard: str, *, after_interruption: bool) -> list[str]:
        """Sentences that answer what was heard, to be spoken one after the other."""
        said = _last_clause(_TITLES.sub(r"\1", heard.lower()))
        sentences = [self._random.choice(SPOKE_TOO_SOON)] if after_interruption else []
        for pattern, templates in _RULES:
            if match := re.fullmatch(pattern, said):
                rest = _reflect(match.groupdict().get("rest", "").strip(" .?!"))
                reply = self._random.choice(templates).format(rest=rest, keyword=_keyword(said))
                return sentences + split_sentences(reply)
        return sentences + ["Please go on."]

    def not_understood(self) -> list[str]:
        """The honest answer to speech that is not English, or too unclear."""
        return list(NOT_UNDERSTOOD)


def split_sentences(text: str) -> list[str]:
    """Cut after '.', '?' and '!'."""
    return re.split(r"(?<=[.?!])\s+", text)


def _last_clause(said: str) -> str:
    """What the speaker meant in the end: after a self-repair, and of several sentences the last."""
    said = _REPAIR.split(said)[-1]
    sentences = [part for part in split_sentences(said.strip()) if len(_WORD.findall(part)) > 1]
    clause = sentences[-1] if sentences else said
    return re.sub(
        r"^(?:(?:and|but|so|well|oh|okay|yes|no|um|uh|please)\b[,\s]*)+", "", clause
    ).strip(" .!")


def _reflect(words: str) -> str:
    """Swap the speaker's point of view for the listener's."""
    return _REFLECTED.sub(lambda match: _REFLECTIONS[match[1]], words)


def _keyword(said: str) -> str:
    """The longest uncommon word, of equals the last."""
    words = [word for word in _WORD.findall(said) if len(word) > 3 and word not in _COMMON.split()]
    return max(reversed(words), key=len, default="that")
