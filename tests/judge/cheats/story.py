"""Cheats with what was said and with whose result it is: texts, samples, failures."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from hfd.judge.identity_check import sample_seed
from tests.judge.cheats.common import each, one
from tests.judge.forge import Forgery


def edited_text_in_result(results: Path) -> None:
    forgery = one(results)
    forgery.result["text"] = "There are three people in the picture."
    forgery.write_documents()


_OTHER = "there are three people in the picture and two dogs behind them"


def _edit_text(forgery: Forgery) -> None:
    other = _OTHER.split()
    for n, line in enumerate(forgery.of("text")):
        line["delta"] = other[n % len(other)] + " "
    forgery.seal()


def edited_text_everywhere(results: Path) -> None:
    for forgery in each(results)[1:6]:
        _edit_text(forgery)


def edited_text_in_one_sample(results: Path) -> None:
    _edit_text(one(results))


def text_only(results: Path) -> None:
    forgery = one(results)
    forgery.drop(forgery.of("audio"))
    forgery.queue()
    forgery.seal()


def edited_trace(results: Path) -> None:
    forgery = one(results)
    forgery.of("text")[0]["delta"] = "No "
    rows = [line["prev"] for line in forgery.lines]
    forgery.write_trace()
    assert rows != [line["prev"] for line in forgery.lines]


def another_sample_s_results(results: Path) -> None:
    first, second = sorted(results.iterdir())[:2]
    shutil.rmtree(second)
    shutil.copytree(first, second)


def another_sample_s_results_renamed(results: Path) -> None:
    first, second = sorted(results.iterdir())[1:3]
    deliver_as(first, second)


def deliver_as(first: Path, second: Path) -> None:
    """One sample's whole result in the place of another's."""
    shutil.rmtree(second)
    shutil.copytree(first, second)
    forgery = Forgery(second)
    forgery.lines[0]["sample_id"] = second.name
    forgery.provenance["model"]["seed"] = sample_seed(1, second.name)
    forgery.seal()


def dropped_sample(results: Path) -> None:
    shutil.rmtree(sorted(results.iterdir())[2])


def silence_for_a_failure(results: Path) -> None:
    """A sample that failed is delivered as silence; its error stays on record."""
    forgery = one(results)
    forgery.drop(forgery.of("text", "audio", "control"))
    forgery.result |= {"status": "no_response"}
    forgery.queue()
    forgery.seal()
    errors = results.parent / "errors"
    errors.mkdir()
    record = {"error": "the server is gone", "attempt": 1}
    (errors / f"{forgery.folder.name}.json").write_text(json.dumps(record), encoding="utf-8")
