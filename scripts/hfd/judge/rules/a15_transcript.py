"""A15: does the voice say the text?"""

from __future__ import annotations

from collections.abc import Sequence

from hfd.judge.alignment import aligned
from hfd.judge.delivered import turns_of
from hfd.judge.metrics import words
from hfd.judge.rules.rule import Rule, SampleCase, SetCase, over_set
from hfd.judge.sound import audible
from hfd.judge.transcript import compared
from hfd.judge.verdict import FAIL, PASS, Verdict, failed, passed, unknown

PASS_WER = 0.35
FAIL_WER = 0.60
FEWEST_WORDS = 3
"""A recogniser often mishears one or two words alone."""
HAN_RATE = (1.2, 9.0)
"""Han characters per second of speech; 2.3 is a slow dramatic reading, 4.4 a plain one."""
WORD_RATE = (0.3, 10.0)
"""Words of other scripts per second of speech; fast readers say 4."""
HONEST_RATE = 0.04
EARLY_RATE = 0.01
"""Honest samples whose words a recogniser places before they were written."""
LATE_TEXT = 0.5
ENOUGH = 0.9
"""Share of the speaking samples whose voice must have been heard to say the text."""


def of_sample(case: SampleCase) -> Verdict:
    """The WER where a recogniser listened; without one only whether the rate is possible."""
    folder = case.folder
    if folder.track is None or folder.wav is None:
        return unknown("there is no readable trace or wav")
    if any(finding.rule == "A10" for finding in folder.findings):
        return unknown("the wav is not the trace's sound, so its words are not this text's")
    turns = turns_of(folder.trace, folder.chunks)
    whole = sum(sum(words(turn.text)) for turn in turns if not turn.cut)
    if not sum(words(folder.text)):
        return passed("no words were written")
    if not audible(folder.wav.pcm).any():
        return unknown("nothing can be heard, so nothing can be compared")
    if not case.speech:
        if whole < FEWEST_WORDS:
            return unknown("no speech was found in the sound, and hardly a word was written")
        return failed(f"{whole} words were written, and no speech is in the sound")
    heard = case.transcripts.heard.get(folder.wav_sha or "")
    values = compared(turns, case.speech, heard)
    wer = values["h20_wer"]
    if wer is not None and heard is not None:
        evidence = {"wer": round(wer, 3), "heard": heard["text"][:300]}
        times = aligned(folder.trace, heard)
        if times is not None and times.is_early:
            evidence["early"] = "faster" if times.is_faster else "moved"
        if wer <= PASS_WER and times is not None and times.is_faster:
            return unknown(
                f"{times.early} of {times.words} words are heard before they are written, and more "
                "so from word to word: the sound is faster than it was made",
                **evidence,
            )
        if wer <= PASS_WER:
            return passed(f"WER {wer:.2f}", **evidence)
        if wer <= FAIL_WER or whole < FEWEST_WORDS:
            return unknown(f"WER {wer:.2f} is between pass and fail", **evidence)
        return failed(f"the voice says something else (WER {wer:.2f})", **evidence)
    return _by_rate(values, whole)


def _by_rate(values: dict[str, float | None], whole: int) -> Verdict:
    for name, unit, (low, high) in (
        ("h21_han_per_s", "Chinese characters", HAN_RATE),
        ("words_per_s", "words", WORD_RATE),
    ):
        rate = values[name]
        if rate is None or whole < FEWEST_WORDS:
            continue
        if not low <= rate <= high:
            return failed(f"{rate:.1f} {unit} a second cannot be this text's speech")
        return unknown(f"{rate:.1f} {unit} a second is plausible, but nothing has listened")
    return unknown("no recogniser was run, or it was not sure of what it heard")


def of_model(case: SetCase, samples: Verdict) -> Verdict:
    """How many samples' voices say something else, and how many were heard to say the text."""
    speaking = [r for r in case.measured if words(r.facts["text"]) != (0, 0)]
    answers = [(record.sample_id, record.verdicts["A15"]) for record in speaking]
    wrong = [name for name, verdict in answers if verdict.status == FAIL]
    found = over_set(wrong, len(answers), HONEST_RATE, "do not say their text")
    if found is not None:
        return found
    if not answers:
        return unknown("no sample says anything")
    early = early_voices(answers)
    if early is not None:
        return early
    right = sum(verdict.status == PASS for _, verdict in answers)
    told = f"{right} of {len(answers)} speaking samples were heard to say their text"
    return passed(told) if right >= ENOUGH * len(answers) else unknown(told)


def early_voices(answers: Sequence[tuple[str, Verdict]]) -> Verdict | None:
    """Voices that are heard before their text was written.

    Where most of a model's are, and none overtakes its text, a service sends its transcript late.
    """
    how = [(name, verdict.evidence.get("early")) for name, verdict in answers]
    faster = [name for name, kind in how if kind == "faster"]
    moved = [name for name, kind in how if kind is not None]
    found = over_set(faster, len(answers), EARLY_RATE, "are faster than their text was written")
    if found is not None and found.status == FAIL:
        return found
    if len(moved) > LATE_TEXT * len(answers):
        return unknown(
            f"{len(moved)} of {len(answers)} voices are heard before their text: a transcript that "
            "comes late, or sound moved forward",
            samples=moved,
        )
    return over_set(moved, len(answers), EARLY_RATE, "are heard before their text was written")


RULE = Rule(
    "A15",
    "Transcript",
    "Does the voice say the text?",
    "a recogniser heard at least 90 % of the speaking samples say their text (word error rate "
    "≤ 0.35; numbers, signs and names in one form, what a cut left unheard not counted), and no "
    "more samples than chance allows say something else (> 0.60), hold no speech, or speak at an "
    "impossible rate (Chinese: beyond 1.2 to 9 characters a second, else 0.3 to 10 words), or are "
    "heard before they were written",
    of_sample,
    of_model,
)
