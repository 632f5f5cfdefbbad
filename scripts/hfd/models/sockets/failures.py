"""The ways in which a sample over a socket can fail, by name, and who is at fault."""

from __future__ import annotations

from hfd.errors import HfdError, LostAs

FAILURES = {
    "connect_failed": "no connection, or no answer to it in time",
    "refused": "the server refused the connection or the session (key, path, settings)",
    "busy": "the server has no room or no quota left",
    "socket_lost": "the connection broke, or was closed before the end",
    "too_big": "a message above the size limit",
    "protocol": "a message that breaks the protocol",
    "error": "the server said that it failed",
    "unknown_events": "only events came that the client does not know",
    "incomplete": "the server called itself done, but something due is missing",
    "stalled": "nothing came for too long while something was due",
    "never_ended": "the sample's total time was over before its end came",
    "not_online": "input left too late, or output came after it could count",
    "server_died": "a server that the worker had started ended",
}
"""Kinds of failure. With several peers the peer's name stands in front: ``tts_socket_lost``."""
SERVER_AT_FAULT = frozenset({"connect_failed", "refused", "busy"})
"""Kinds after which no other sample could succeed either (`ModelBroken`)."""
LOST_AS: dict[str, LostAs] = {"refused": "refused", "not_online": "failed"}
"""How a sample is counted; in all other kinds the service is at fault."""


class SampleFailure(HfdError):
    """A sample that ended in a way that makes no result.

    Attributes:
        kind: one of `FAILURES`.
        end_reason: the kind, with the peer's name in front if there is one.
    """

    def __init__(
        self, kind: str, problem: str, *, peer: str = "", remedy: str | None = None
    ) -> None:
        assert kind in FAILURES
        self.kind = kind
        self.end_reason = f"{peer}_{kind}" if peer else kind
        self.lost_as = LOST_AS.get(kind, "service_error")
        super().__init__(f"{self.end_reason}: {problem}", remedy=remedy)

    @property
    def server_at_fault(self) -> bool:
        """Whether the server, not the sample, is at fault."""
        return self.kind in SERVER_AT_FAULT
