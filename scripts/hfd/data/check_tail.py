"""Has the file its 3 s tail once: not none, not twice?"""

from __future__ import annotations

from typing import Any

import numpy as np

from hfd.data.decode import Decoded
from hfd.data.finding import Finding
from hfd.data.stamp import Stamp
from hfd.media_time import FPS, PAD_SAMPLES, PAD_VIDEO_FRAMES, SAMPLE_RATE

LOUD = 33
"""int16 value just above -60 dBFS."""
LOSSY_SPREAD = 2048
"""Samples by which a lossy codec smears sound into silence (128 ms)."""
_TWICE = range(2 * PAD_VIDEO_FRAMES, 2 * PAD_VIDEO_FRAMES + 3)
"""Frozen video frames of a file padded twice: two tails, and up to two of the body itself."""


def check_tail(found: Decoded, pcm: np.ndarray) -> Finding:
    """Stamp, frozen video frames and silence together.

    A stamp is certain. Without one (delivered files), a frozen run of two tails with 6 s of silence
    is a file padded twice; a longer frozen run is a still image, which nobody can tell apart.

    Args:
        found: the decoded file.
        pcm: int16, cut or filled to the video frames' length.
    """
    stamp = Stamp.parse(found.comment)
    loud = np.flatnonzero(np.abs(pcm.astype(np.int32)) >= LOUD)
    silent = len(pcm) - (int(loud[-1]) + 1 if len(loud) else 0)
    needed = PAD_SAMPLES - (0 if found.lossless else LOSSY_SPREAD)
    evidence: dict[str, Any] = {
        "frozen_pictures": found.frozen_run,
        "silent_s": silent / SAMPLE_RATE,
        "stamp": str(stamp) if stamp else None,
    }

    def say(status: Any, message: str) -> Finding:
        return Finding("padding", status, message, evidence)

    if stamp and found.frames != stamp.frames:
        extra = (found.frames - stamp.frames) / FPS
        return say("fail", f"{extra:+.1f} s against the stamp: padded again, or cut")
    if found.frozen_run < PAD_VIDEO_FRAMES:
        return say("fail", f"no 3 s tail: only {found.frozen_run} frozen video frames at the end")
    if silent < needed:
        return say("fail", f"no 3 s tail: sound until {silent / SAMPLE_RATE:.3f} s before the end")
    if not stamp and silent >= 2 * needed:
        if found.frozen_run in _TWICE:
            return say("fail", f"padded twice: {found.frozen_run} frozen video frames, and silence")
        if found.frozen_run > _TWICE[-1]:
            still = found.frozen_run / FPS
            return say("suspect", f"still for {still:.1f} s or more: compare with the source")
    return say("ok", "3 s of frozen video and silence, once")
