"""Once the user has interrupted it: does it answer anew, resume its old answer, or say nothing?"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher

from hfd.judge.definitions import STATED
from hfd.judge.delivered import Turn
from hfd.judge.intervals import Interval, merged
from hfd.judge.metrics import Question
from hfd.judge.speech import MERGE_GAP_S
from hfd.judge.spoken_words import words_and_characters

ANEW, RESUMES, SILENT, GOES_ON = "anew", "resumes", "silent", "goes_on"
SHORTEST_RUN = 3
"""So many words (Han characters one by one) in a row are the same sentence, not the same topic."""
RESUMED_SHARE = 0.5


def after_interruption(turns: Sequence[Turn], question: Question | None) -> str | None:
    """What became of the turn that was heard when the user began to speak again.

    Args:
        turns: of the trace, in order.
        question: the user's words.

    Returns:
        ``goes_on``: its sound never stopped before the question's end; ``silent``: nothing more
        is said from there on; ``resumes``: at least half of the words of what is said then lie in
        runs of three or more that the interrupted turn has too, heard or not; ``anew``: any other
        answer. None where nothing was interrupted, or the trace does not part the turns.
    """
    if question is None or question.correction is None:
        return None
    begin, end = question.correction.start, question.q1
    heard = [merged(turn.played, MERGE_GAP_S) for turn in turns]
    at = next((n for n, parts in enumerate(heard) if _covers(parts, begin)), None)
    if at is None:
        return None
    if _covers(heard[at], begin, end):
        return GOES_ON
    if heard[at][-1].end > end:
        return None  # one turn for both answers: which words are whose is not told
    after = range(at + 1, len(turns))
    later = [turns[n] for n in after if heard[n] and heard[n][-1].end > end - STATED.margin_s]
    if not later:
        return SILENT
    said = words_and_characters(" ".join(turn.text for turn in later))
    return RESUMES if _shared(words_and_characters(turns[at].text), said) >= RESUMED_SHARE else ANEW


def _covers(parts: Sequence[Interval], *times: float) -> bool:
    """Whether one of the parts holds all times."""
    return any(all(part.start < t < part.end for t in times) for part in parts)


def _shared(old: Sequence[str], new: Sequence[str]) -> float:
    """Share of the new words that lie in runs which the old ones have too."""
    blocks = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
    return sum(b.size for b in blocks if b.size >= SHORTEST_RUN) / max(1, len(new))
