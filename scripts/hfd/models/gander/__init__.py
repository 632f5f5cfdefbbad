"""Gander: MiniCPM-o 4.5's duplex code with a thinker and a talker of its own, and an interrupt."""

from hfd.models.gander.model import Gander

MODEL = Gander
