"""DuplexOmni in the contract suite: reference thinker and talker on real sockets."""

from contextlib import contextmanager

from tests.contract.case import Case
from tests.fakes.duplexomni import Talker, Thinker
from tests.models.duplexomni.conftest import settings_for


@contextmanager
def peer(folder):
    thinker, talker = Thinker(), Talker()
    try:
        yield settings_for(thinker, talker)
    finally:
        thinker.die()
        talker.die()


CASE = Case("duplexomni", "duplexomni", peer)
