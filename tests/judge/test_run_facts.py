"""What the report says of how results were made."""

from types import SimpleNamespace

from hfd.judge.run_facts import model_card, run_facts


def record(**detail):
    provenance = {"model": {"name": "m", "detail": detail}, "contract": {"turn_taking": "vad"}}
    return SimpleNamespace(facts={"run": run_facts(provenance)})


def test_a_closed_service_is_called_one_and_its_duplex_is_named():
    card = model_card([record(black_box=True, full_duplex="vad_gated"), record()])
    assert card["black_box"] and card["full_duplex"] == ["vad_gated"]


def test_a_model_that_says_nothing_of_it_is_none():
    assert not model_card([record()])["black_box"]
    assert not model_card([record(black_box=False)])["black_box"]
