"""One sample over one or more sockets: its tasks, its first failure, and the end of its time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

from hfd.models.sockets.failures import SampleFailure
from hfd.models.sockets.recording import Recording, Secrets

T = TypeVar("T")
_NO_SUCH_MESSAGE = (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError)


class Exchange:
    """What the sockets of one sample share. Lives in the event loop's thread.

    Attributes:
        failure: the first failure; later ones follow from it.
        recording: takes every message of every socket.
        secrets: what may stand in no message that leaves the process.
    """

    def __init__(self, recording: Recording, secrets: Secrets | None = None) -> None:
        self.failure: BaseException | None = None
        self.recording = recording
        self.secrets = secrets or Secrets()
        self._failed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._cap: asyncio.TimerHandle | None = None

    def fail(self, error: BaseException) -> None:
        """Keep the first failure."""
        self.failure = self.failure or error
        self._failed.set()

    def spawn(self, work: Coroutine[Any, Any, None], peer: str = "") -> asyncio.Task[None]:
        """Run a task beside the others; if it raises, the sample fails.

        An error in reading a message (`ValueError`, `KeyError`, ...) is ``<peer>_protocol``.
        """
        task = asyncio.create_task(self._guarded(work, peer))
        self._tasks.append(task)
        return task

    def end_by(self, moment: float, limit: str) -> None:
        """Fail the sample at `moment` (the loop's clock), whatever comes until then."""
        if self._cap is None:
            failure = SampleFailure(
                "never_ended",
                f"the sample was not over within {limit}",
                remedy="The server goes on without end, or drain_max_s is too short for it",
            )
            loop = asyncio.get_running_loop()
            self._cap = loop.call_at(moment, self.fail, failure)

    async def unless_failed(self, work: Awaitable[T]) -> T:
        """The result of `work`, or the failure, whichever comes first."""
        task = asyncio.ensure_future(work)
        failed = asyncio.ensure_future(self._failed.wait())
        try:
            await asyncio.wait([task, failed], return_when=asyncio.FIRST_COMPLETED)
            if self.failure is not None:
                raise self.failure
            return await task
        finally:
            task.cancel()
            failed.cancel()

    async def close(self) -> None:
        """End all tasks and the recording."""
        if self._cap is not None:
            self._cap.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.recording.close()

    async def _guarded(self, work: Coroutine[Any, Any, None], peer: str) -> None:
        try:
            await work
        except _NO_SUCH_MESSAGE as error:
            text = self.secrets.hide(f"{type(error).__name__}: {error}")
            self.fail(SampleFailure("protocol", text, peer=peer))
        except Exception as error:
            self.fail(error)
