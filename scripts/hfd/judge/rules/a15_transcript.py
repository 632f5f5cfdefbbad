"""A15: does the voice say the text?"""

from __future__ import annotations

from hfd.judge.rules.rule import Rule, SampleCase
from hfd.judge.transcript import compared
from hfd.judge.verdict import Verdict, failed, passed, unknown

PASS_WER = 0.35
FAIL_WER = 0.60
RATE = (1.5, 8.0)
"""Han characters per second of speech; 2.3 is a slow dramatic reading, 4.4 a plain one."""


def of_sample(case: SampleCase) -> Verdict:
    """The WER for English, the character rate for Chinese."""
    folder = case.folder
    if folder.track is None or folder.wav is None:
        return unknown("there is no readable trace or wav")
    text = "".join(line["delta"] for _, line in folder.trace.of("text"))
    if not text.strip() or not folder.wav.pcm.any():
        return passed("no speech with text to compare")
    speech_s = sum(part.length for part in case.speech)
    heard = case.transcripts.heard.get(folder.wav_sha or "")
    values = compared(text, speech_s, heard)
    wer, rate = values["h20_wer"], values["h21_han_per_s"]
    if wer is not None and heard is not None:
        evidence = {"wer": round(wer, 3), "heard": heard["text"][:300]}
        if wer > FAIL_WER:
            return failed(f"the voice says something else (WER {wer:.2f})", **evidence)
        if wer > PASS_WER:
            return unknown(f"WER {wer:.2f} is between pass and fail", **evidence)
        return passed(f"WER {wer:.2f}", **evidence)
    if rate is not None:
        low, high = RATE
        if not low <= rate <= high:
            return failed(f"{rate:.1f} Chinese characters a second cannot be this text's speech")
        return unknown(
            f"{rate:.1f} Chinese characters a second is plausible, but nothing has listened"
        )
    return unknown("no recogniser was run, or it was not sure of what it heard")


RULE = Rule(
    "A15",
    "Transcript",
    "Does the voice say the text?",
    "English: word error rate of the voice ≤ 0.35 passes, > 0.60 fails; Chinese: 1.5 to 8 "
    "characters a second, else fail (a plausible rate alone is no pass)",
    of_sample,
)
