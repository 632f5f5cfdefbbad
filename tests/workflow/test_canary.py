"""Canaries through the real Snakemake: who keeps the context answers, who crops or looks away not.

The test models hear with a real recogniser and see real frames; the voice is the embedded model's.
"""

import json

import pytest

from hfd.data.canary import COUNT, SHOWN, SPOKEN, drawn_canaries, forms
from hfd.data.check import Subject, check_sample
from hfd.data.manifest import read_manifest
from hfd.judge.canary import named

MODELS = {"keeps": {}, "crops": {"keep_s": 5}, "blind": {"looks": False}}
NONCE = "audit={nonce: 'a word of mine'}"


def test_only_who_keeps_its_context_and_looks_answers(desk):
    desk.add_samples(["a"])
    for name, settings in MODELS.items():
        desk.add_model(name)
        desk.models[name] |= {"module": "testmodels.listener", "settings": settings}
    desk.run("--config", NONCE, "--", *(f"canary_{name}" for name in MODELS))
    media = desk.path / "work/audit/canary/media"
    for sample in read_manifest(media / "manifest.jsonl", media):
        subject = Subject(
            sample.sample_id, sample.task, sample.video, sample.adapter, sample.duration_seconds
        )
        verdict = check_sample(subject)
        assert verdict["status"] == "ok", verdict["findings"]

    def right(name, kind):
        stored = json.loads((desk.path / f"work/audit/probes/canary/{name}.json").read_text())
        assert stored["nonce"] == "a word of mine" and stored["model"]["model"] == name
        return sum(one["right"] for one in stored["samples"].values() if one["kind"] == kind)

    assert (right("keeps", "spoken"), right("keeps", "shown")) == (COUNT, COUNT)
    assert (right("crops", "spoken"), right("crops", "shown")) == (0, 0)
    assert (right("blind", "spoken"), right("blind", "shown")) == (COUNT, 0)
    assert not (desk.path / "results" / "keeps").exists(), "kept out of results"
    desk.run("--config", NONCE, "--", "audit_keeps")
    audit = desk.path / "results/audit_keeps"
    summary = json.loads((audit / "summary.json").read_text())
    found = summary["reruns"]["keeps"]["canary"]
    assert found["of_these_results"] and found["spoken"]["right"] == COUNT
    assert found["shown"]["chance"] == 1 / len(SHOWN)
    assert f"{COUNT} of {COUNT}" in (audit / "card_keeps.md").read_text()


def test_another_nonce_asks_for_other_words_and_the_same_one_for_the_same():
    first, again, other = (drawn_canaries(nonce) for nonce in ("x", "x", "y"))
    assert first == again != other
    assert len({canary.word for canary in first}) == 2 * COUNT


@pytest.mark.parametrize(
    ("said", "kind", "right"),
    [
        ("You asked me to remember Tiger.", "spoken", {"tiger"}),
        ("是老虎。", "spoken", {"tiger"}),
        ("tiger or rabbit", "spoken", {"tiger", "rabbit"}),
        ("tigers", "spoken", set()),
        ("The screen was covered in red", "shown", {"red"}),
        ("红色的", "shown", {"red"}),
        ("I remembered it, 我明白了", "shown", set()),
    ],
)
def test_an_answer_counts_only_with_the_one_word(said, kind, right):
    assert named(said, forms(kind)) == right


def test_no_form_of_a_word_is_a_form_of_another():
    for kind, words in (("spoken", SPOKEN), ("shown", SHOWN)):
        for word in words:
            for form in forms(kind)[word]:
                assert named(f"It was {form}.", forms(kind)) == {word}, form
