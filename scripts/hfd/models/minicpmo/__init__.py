"""MiniCPM-o 4.5 and Realtime-Venus-Omni: native full duplex with a talker, in one-second units."""

from hfd.models.minicpmo.model import MiniCpmO

MODEL = MiniCpmO
