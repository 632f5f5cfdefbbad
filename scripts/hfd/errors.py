"""Errors that a user can mend: each names the file, the field and the remedy."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

LostAs = Literal["failed", "refused", "service_error"]
LOST_AS: tuple[str, ...] = get_args(LostAs)


class HfdError(Exception):
    """Bad input or a broken environment, in one sentence a user can act on.

    Args:
        problem: what is wrong, with the value that was found.
        file: the file it was found in, with ``:line`` where lines count.
        field: the key, option or column inside that file.
        remedy: what the user should do about it.

    Attributes:
        lost_as: how a sample that it ends is counted: ``failed``, ``refused`` (a service would not
            answer it) or ``service_error`` (a service could not).
    """

    lost_as: LostAs = "failed"

    def __init__(
        self,
        problem: str,
        *,
        file: str | Path | None = None,
        field: str | None = None,
        remedy: str | None = None,
    ) -> None:
        self.problem = problem
        self.file = str(file) if file is not None else None
        self.field = field
        self.remedy = remedy
        place = ": ".join(part for part in (self.file, field) if part)
        text = f"{place}: {problem}" if place else problem
        super().__init__(f"{text}. {remedy}" if remedy else text)

    def as_dict(self) -> dict[str, str | None]:
        """The parts of the error, as they are stored in an error record."""
        return {
            "problem": self.problem,
            "file": self.file,
            "field": self.field,
            "remedy": self.remedy,
        }


def require_utf8() -> None:
    """File names are written in UTF-8, or nothing is: another system could not read them.

    Raises:
        HfdError: the locale says another encoding.
    """
    encoding = sys.getfilesystemencoding()
    if encoding.lower().replace("-", "") != "utf8":
        raise HfdError(
            f"the locale's encoding is {encoding}, not UTF-8; file names would be written in it",
            remedy="export LC_ALL=C.UTF-8 and run again",
        )


def reason(error: BaseException) -> str:
    """What went wrong in words, without the number that the system or FFmpeg has for it."""
    return str(getattr(error, "strerror", None) or error or type(error).__name__)


def run_cli(main: Callable[[list[str] | None], int | None]) -> None:
    """Run a command-line entry point: user errors are one line on stderr and exit code 1."""
    try:
        require_utf8()
        sys.exit(main(None) or 0)
    except HfdError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.exit(1)
