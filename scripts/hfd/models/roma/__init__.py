"""ROMA (EurekaTian/ROMA): Qwen2.5-Omni with a speak head, native talker, in one-second units."""

from hfd.models.roma.model import Roma

MODEL = Roma
