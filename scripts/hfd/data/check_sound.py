"""Do the adapter's events lie where the sound is?"""

from __future__ import annotations

from typing import Any

import numpy as np

from hfd.data.adapter import Adapter, AdapterEvent
from hfd.data.check_tail import LOSSY_SPREAD, LOUD
from hfd.data.decode import Decoded
from hfd.data.finding import Finding
from hfd.data.manifest import HESITATION
from hfd.media_time import PAD_SAMPLES, SAMPLE_RATE, samples_to_seconds, seconds_to_samples

_ROUNDING_S = 0.001
_FRAME = SAMPLE_RATE // 100
_STRAY_S = 0.05
"""Less sound than this outside the events is a click, not speech."""


def check_events(adapter: Adapter, task: str, samples: int) -> Finding:
    """Every event ends before the tail; a hesitation sample has both questions, in order."""
    body_s = samples_to_seconds(samples - PAD_SAMPLES)
    ends = [event.end for event in adapter.events]
    evidence = {"body_s": body_s, "p0": adapter.p0, "p1": adapter.p1}
    evidence |= {"q0": adapter.q0, "q1": adapter.q1, "last_end": max(ends, default=None)}

    def say(status: Any, message: str) -> Finding:
        return Finding("events", status, message, evidence)

    hesitation = task == HESITATION
    first, second = adapter.first, adapter.second
    if hesitation and not (first and second):
        return say("fail", "the adapter names no first and second question")
    if hesitation and first and second and second.start < first.end:
        return say("fail", "the correction begins before the prefix has ended")
    if ends and max(ends) > body_s + _ROUNDING_S:
        return say(
            "fail" if hesitation else "suspect",
            f"an event ends at {max(ends):.3f} s, in or behind the tail ({body_s:.3f} s): "
            "was video_offset subtracted?",
        )
    return say("ok", f"{len(ends)} events before the tail")


def check_sound(
    first: AdapterEvent, second: AdapterEvent, found: Decoded, pcm: np.ndarray
) -> Finding:
    """A hesitation sample is heard in its two events and silent elsewhere (-60 dBFS).

    Sound elsewhere is the source's own track, the full first question, or a wrong offset.
    """
    frames = len(pcm) // _FRAME
    level = np.sqrt(
        np.mean(pcm[: frames * _FRAME].reshape(frames, _FRAME).astype(np.float64) ** 2, axis=1)
    )
    loud = level >= LOUD
    reach = 0 if found.lossless else LOSSY_SPREAD
    outside = loud.copy()
    silent_roles = []
    for event in (first, second):
        inside = _frames_of(event, reach)
        if not loud[inside].any():
            silent_roles.append(event.role or f"event at {event.start:g} s")
        outside[inside] = False
    gap = slice(_frames_of(first, reach).stop, _frames_of(second, reach).start)
    stray_s, gap_s = float(outside.sum()) / 100, float(outside[gap].sum()) / 100
    first_sound = float(np.argmax(loud)) / 100 if loud.any() else None
    evidence = {"first_sound_s": first_sound, "stray_s": stray_s, "stray_in_gap_s": gap_s}

    def say(status: Any, message: str) -> Finding:
        return Finding("sound", status, message, evidence)

    if silent_roles:
        return say(
            "fail",
            f"nothing is heard in {' and '.join(silent_roles)} (first sound at {first_sound} s, "
            f"first question at {first.start:g} s): was video_offset subtracted?",
        )
    if gap_s > _STRAY_S:
        return say("fail", f"{gap_s:.2f} s of sound between prefix and correction")
    if stray_s > _STRAY_S:
        return say("fail", f"{stray_s:.2f} s of sound outside the two questions")
    return say("ok", "sound in the two questions, silence elsewhere")


def _frames_of(event: AdapterEvent, reach: int) -> slice:
    """The 10 ms frames an event touches, `reach` samples wider on both sides."""
    start = max(0, seconds_to_samples(event.start) - reach) // _FRAME
    return slice(start, -(-(seconds_to_samples(event.end) + reach) // _FRAME))
