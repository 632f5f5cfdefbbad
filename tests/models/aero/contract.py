"""Aero in the contract suite: both reference servers as children of the worker."""

from contextlib import nullcontext

from tests.contract.case import Case
from tests.models.aero.conftest import pair_settings, server_settings


def settings():
    """Speech that lasts longer than the pause that ends an utterance, as real speech does.

    Until that pause is over speech goes on in real time; what is said then depends on the clock
    unless the text still fills it.
    """
    return pair_settings(
        servers={
            "aero": server_settings("aero_server.py"),
            "tts": server_settings("tone_server.py", "1", "8"),
        }
    )


CASE = Case("aero", "aero", lambda folder: nullcontext(settings()), media_s=1.6)
