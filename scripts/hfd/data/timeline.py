"""Where each question lies in the compiled file: a pure function, exact in samples.

A time of the conversation becomes media time by ``t = start - video_offset``. Whatever does not
fit is refused, never repaired: a moved or shortened question would be another sample.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from hfd.data.raw import RawEvent, RawSample
from hfd.errors import HfdError
from hfd.media_time import (
    FPS,
    PAD_VIDEO_FRAMES,
    VIDEO_FRAME_SAMPLES,
    samples_to_seconds,
    seconds_to_samples,
)

MISMATCH_S = Fraction(20, 1000)
"""``end - start`` and the source range may differ by this much without a word."""
ROUNDING_S = Fraction(1, 1000)
"""A source range may end this far behind its audio, because lengths are written in ms."""

_OPEN_ENDS = " \t\r\n.…。,，、;；:：-—–~～!！?？"


@dataclass(frozen=True)
class Clip:
    """One question in the compiled file; all positions in samples at 16 kHz.

    Attributes:
        event: the question.
        start, end: where it plays in the compiled file.
        source_start: where it begins in its recording.
    """

    event: RawEvent
    start: int
    end: int
    source_start: int


@dataclass(frozen=True)
class Timeline:
    """The compiled file before it exists.

    Attributes:
        clips: the first question's prefix and the second question.
        body: video frames before the 3 s tail.
        warnings: what is odd but not wrong, one sentence each.
    """

    clips: tuple[Clip, ...]
    body: int
    warnings: tuple[str, ...]

    @property
    def frames(self) -> int:
        """All video frames, the frozen tail included."""
        return self.body + PAD_VIDEO_FRAMES

    @property
    def samples(self) -> int:
        """All samples, the silent tail included."""
        return self.frames * VIDEO_FRAME_SAMPLES

    @property
    def seconds(self) -> float:
        """Length of the file: `duration_seconds` of the manifest."""
        return self.frames / FPS


def hesitation_timeline(
    sample: RawSample,
    audio_seconds: Sequence[Fraction],
    video_end: Fraction,
    full_first_question: str = "refuse",
) -> Timeline:
    """Place the two questions of a raw row.

    Args:
        sample: the row.
        audio_seconds: length of each question's recording.
        video_end: end of the source video's last video frame, in seconds from the video's 0.
        full_first_question: ``refuse`` or ``warn`` when the first question's spoken text is not
            an unfinished beginning of its text.

    Raises:
        HfdError: a question begins before the video's 0, has an empty or inverted range, ranges
            beyond its recording, overlaps the other, or is no unfinished prefix.
    """
    offset = _exact(sample.video_offset)
    warnings: list[str] = []
    clips = []
    for event, length in zip(sample.events, audio_seconds, strict=True):
        clips.append(_place(event, offset, length, sample.place, warnings))
    first, second = clips
    if first.end > second.start:
        raise HfdError(
            f"ends at {samples_to_seconds(first.end):.3f} s of the video, but the second question "
            f"begins at {samples_to_seconds(second.start):.3f} s",
            file=sample.place,
            field=first.event.field,
            remedy="The unfinished prefix must end before the correction begins",
        )
    _check_prefix(first.event, sample.place, full_first_question, warnings)
    end = Fraction(second.end, VIDEO_FRAME_SAMPLES)
    if end > video_end * FPS:
        warnings.append(
            f"speech ends at {samples_to_seconds(second.end):.3f} s, after the video "
            f"({float(video_end):.3f} s): its last video frame is held"
        )
    return Timeline((first, second), math.ceil(max(end, video_end * FPS)), tuple(warnings))


def is_unfinished(spoken: str, meant: str) -> bool:
    """Whether `spoken` is a proper beginning of `meant`; case, spaces and open ends aside."""
    heard, full = _letters(spoken), _letters(meant)
    return 0 < len(heard) < len(full) and full.startswith(heard)


def _place(
    event: RawEvent, offset: Fraction, audio: Fraction, place: str, warnings: list[str]
) -> Clip:
    start = _exact(event.start) - offset
    source_start, source_end = _exact(event.source_start), _exact(event.source_end)
    if start < 0:
        raise _refusal(
            f"starts at {float(start):.3f} s of the video ({event.start:g} - {float(offset):g})",
            place,
            f"{event.field}.start",
            "Correct start or the video offset: a question cannot begin before the video",
        )
    for name, begin, end in (
        ("end", event.start, event.end),
        ("source_end", event.source_start, event.source_end),
    ):
        if end <= begin:
            problem = f"range {begin:g} to {end:g} is empty or inverted"
            raise _refusal(problem, place, f"{event.field}.{name}", "Write start before end")
    if source_end > audio + ROUNDING_S:
        raise _refusal(
            f"{event.source_end:g} s lies beyond the recording, which has {float(audio):.3f} s",
            place,
            f"{event.field}.source_end",
            f"Correct the range, or deliver the whole recording {event.audio.name}",
        )
    mismatch = (source_end - source_start) - (_exact(event.end) - _exact(event.start))
    if abs(mismatch) > MISMATCH_S:
        warnings.append(
            f"{event.role}: the source range is {float(mismatch):+.3f} s longer than end - start; "
            "the source range rules"
        )
    first = seconds_to_samples(start)
    begin = seconds_to_samples(source_start)
    length = seconds_to_samples(source_end) - begin
    if length <= 0:
        problem = "source range holds no sample"
        raise _refusal(problem, place, f"{event.field}.source_end", "Write seconds")
    return Clip(event, first, first + length, begin)


def _check_prefix(event: RawEvent, place: str, rule: str, warnings: list[str]) -> None:
    if is_unfinished(event.spoken_text, event.text):
        return
    problem = f"{event.spoken_text!r} is no unfinished beginning of {event.text!r}"
    if rule == "warn":
        warnings.append(f"{event.role}: {problem}")
        return
    raise _refusal(
        problem,
        place,
        f"{event.field}.spoken_text",
        "Give only the words heard before the break (config: raw.full_first_question: warn)",
    )


def _letters(written: str) -> str:
    folded = unicodedata.normalize("NFKC", written).casefold()
    return " ".join(folded.split()).strip(_OPEN_ENDS)


def _exact(value: float) -> Fraction:
    """The decimal number that was written, so that 5.3 - 2.1 is 3.2."""
    return Fraction(repr(value))


def _refusal(problem: str, place: str, field: str, remedy: str) -> HfdError:
    return HfdError(problem, file=place, field=field, remedy=remedy)
