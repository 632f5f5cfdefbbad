"""What a recogniser would hear in a test model's wav: the words of the recording it plays.

The test models say the recording's own words (`Talker`), so an honest wav is heard as its honest
text; the honest text of each wav is noted when the run is made.
"""

from __future__ import annotations

import hashlib
import json

SPOKEN: dict[str, str] = {}


def note(folder):
    """Remember what an honest run's wav says."""
    digest = hashlib.sha256((folder / "assistant_audio.wav").read_bytes()).hexdigest()
    SPOKEN[digest] = json.loads((folder / "result.json").read_text(encoding="utf-8"))["text"]


def heard(folder):
    digest = hashlib.sha256((folder / "assistant_audio.wav").read_bytes()).hexdigest()
    if digest not in SPOKEN:
        return {}
    return {digest: {"wav_sha256": digest, "text": SPOKEN[digest], "avg_logprob": -0.3}}
