"""What planted cheats share: the results of a folder, opened to be forged and sealed again."""

from __future__ import annotations

from pathlib import Path

from tests.judge.forge import Forgery


def each(results: Path) -> list[Forgery]:
    return [Forgery(folder) for folder in sorted(results.iterdir())]


def one(results: Path, with_answer: bool = True) -> Forgery:
    return next(
        f
        for f in each(results)
        if not with_answer or any(line["kind"] == "audio" for line in f.answer())
    )


def after_open(forgery: Forgery) -> None:
    """Keep lines inside the run, in order, on the queue, and agree everywhere."""
    end = max(line["t"] for line in forgery.lines)
    forgery.of("end")[0]["t"] = round(end + 0.001, 6)
    forgery.sort()
    forgery.queue()
    forgery.seal()
