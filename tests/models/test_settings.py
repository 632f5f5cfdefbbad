"""Settings checked against the dataclass that declares them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

import pytest

from hfd.errors import HfdError
from hfd.models.registry import create_model
from hfd.models.settings import Range, Share, make_settings


@dataclass(frozen=True)
class Place:
    url: str
    gpus: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Settings:
    name: str
    threshold: Share = 0.5
    steps: Annotated[int, Range(1, 10)] = 2
    head: Literal["mlp", "linear"] = "mlp"
    record: bool = False
    place: Place | None = None
    rate: float | str = 1
    more: dict[str, Any] = field(default_factory=dict)


def test_what_fits_is_taken_as_it_is_and_the_rest_has_its_default():
    given = {"steps": 3, "threshold": 1, "place": {"url": "x", "gpus": [1]}, "rate": "1/2"}
    found = make_settings(Settings, given, name="a")
    assert found == Settings("a", 1, 3, place=Place("x", [1]), rate="1/2")
    assert make_settings(Settings, {"name": "b", "place": None}) == Settings("b")


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ([], "s: is []. Write its keys, each with a value"),
        ({}, "s.name: is missing. Write a value for it"),
        ({"name": 5}, "s.name: is 5. Write text"),
        ({"steps": 3.0}, "s.steps: is 3.0. Write a whole number"),
        ({"steps": True}, "s.steps: is True. Write a whole number"),
        ({"steps": 11}, "s.steps: is 11. Write a number from 1 to 10"),
        ({"threshold": "0.5"}, "s.threshold: is '0.5'. Write a number"),
        ({"threshold": float("nan")}, "s.threshold: is nan. Write a number"),
        ({"head": "MLP"}, "s.head: is 'MLP'. Write one of mlp, linear"),
        ({"head": ["mlp"]}, "s.head: is ['mlp']. Write one of mlp, linear"),
        ({"record": 1}, "s.record: is 1. Write true or false"),
        ({"record": None}, "s.record: is None. Write true or false"),
        ({"place": "x"}, "s.place: is 'x'. Write its keys, each with a value"),
        ({"place": {}}, "s.place.url: is missing. Write a value for it"),
        ({"place": {"ulr": "x"}}, "s.place.ulr: is no setting. Known: url, gpus"),
        (
            {"place": {"url": "x", "gpus": [0, "1"]}},
            "s.place.gpus[1]: is '1'. Write a whole number",
        ),
        ({"place": {"url": "x", "gpus": 1}}, "s.place.gpus: is 1. Write a list"),
        ({"more": []}, "s.more: is []. Write keys, each with a value"),
    ],
)
def test_what_does_not_fit_is_named_with_its_place_and_what_to_write(given, error):
    if given and "name" not in given:
        given = {"name": "a", **given}
    with pytest.raises(HfdError) as caught:
        make_settings(Settings, given, "s")
    assert str(caught.value) == error


def test_a_model_of_the_configuration_is_named_with_its_setting():
    with pytest.raises(HfdError) as caught:
        create_model("duplexomni", {"stack": {"thinker_url": "x"}}, "omni 2")
    place = "config/models.yaml: models.omni 2.settings.stack.talker_url"
    assert str(caught.value) == f"{place}: is missing. Write a value for it"
