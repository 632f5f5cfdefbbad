"""The same outputs under other definitions: what moves, by how much, and what may not."""

import csv
from dataclasses import replace

import numpy as np
import pytest

import audit as audit_script
from hfd.judge.definitions import ALTERNATIVES, STATED
from hfd.judge.intervals import Interval
from hfd.judge.metrics import Answer, Question
from hfd.judge.sensitivity import other_values
from hfd.judge.sensitivity_table import sensitivity_rows
from hfd.judge.speech import Detection, detect
from tests.judge.speech_clips import part
from tests.judge.test_stats import hesitation

QUESTION = Question(8.0, Interval(1.0, 3.0), Interval(5.0, 8.0))
SILENT = Detection(np.zeros(16, "<i2"), 16000, ())


def moved(*segments, texts=(), detection=SILENT):
    answer = Answer([Interval(a, b) for a, b in segments], texts, (), 24000, 11.0)
    found = other_values(detection, answer, QUESTION)
    assert list(found) == list(ALTERNATIVES)
    return {name: values for name, values in found.items() if "speech" not in name}


def test_an_answer_that_every_definition_counts_the_same_moves_nothing():
    assert not any(moved((8.5, 11.0)).values())


def test_a_short_word_in_the_gap_is_a_turn_only_for_who_counts_half_a_second():
    found = moved((3.2, 3.8))
    assert found["turn 0.5 s"] == {
        "h1_gap_takeover": True, "h5_hold_failure": True, "h4_gap_backchannels": 0,
        "mtr_pause": True,
    }  # fmt: skip
    assert not any(values for name, values in found.items() if name != "turn 0.5 s")


def test_many_words_in_little_time_are_a_turn_by_words_alone():
    found = moved((3.2, 3.9), texts=[(3.3, "one two three four")])
    assert found["turn by time alone"]["h1_gap_takeover"] is False
    assert not found["turn 2 s"]


def test_the_margin_decides_whether_an_early_answer_barges_in():
    found = moved((7.8, 10.0))
    assert found["margin 0 s"] == {
        "h3_correction_barge_in": True, "h5_hold_failure": True, "h9_response_s": None,
        "h9_settled_s": None, "h10_spanning": True, "h11_responded": False,
    }  # fmt: skip
    assert not found["margin 0.5 s"]


def test_a_lower_threshold_finds_at_least_the_speech_of_a_higher_one():
    pcm = part("two_cities", 16000, 2.0, 6.0)
    pcm = np.clip(pcm * 3000 + np.random.default_rng(0).normal(0, 120, len(pcm)), -32768, 32767)
    detection = detect(pcm.astype("<i2"), 16000)
    low, stated, high = (
        sum(part.length for part in detection.segments(chance)) for chance in (0.3, 0.5, 0.7)
    )
    assert low >= stated >= high > 1.0
    assert detection.segments() == detection.segments(STATED.speech_chance)


def test_rows_say_the_definition_the_shift_and_how_many_samples_changed():
    records = [hesitation("m", k, k < 3) for k in range(10)]
    for k in (3, 4):
        records[k].facts["under"] = {"turn 0.5 s": {"h1_gap_takeover": True}}
    rows = {
        (row["definition"], row["metric"]): row
        for row in sensitivity_rows({"m": [replace(record) for record in records]})
    }
    stated, half = rows["stated", "h1_gap_takeover"], rows["turn 0.5 s", "h1_gap_takeover"]
    assert (stated["value"], stated["shift"], stated["changed"]) == (0.3, 0, 0)
    assert (half["value"], half["changed"], half["turn_s"]) == (0.5, 2, 0.5)
    assert half["shift"] == pytest.approx(0.2) and half["low"] < 0.5 < half["high"]
    assert rows["margin 0 s", "h1_gap_takeover"]["changed"] == 0


def read_csv(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def test_an_audit_writes_the_table_and_every_table_says_its_definition(world, honest, tmp_path):
    models = tmp_path / "models.yaml"
    models.write_text("models: {talker: {module: test, voice_origin: native_talker}}\n")
    audit_script.main(
        ["--manifest", str(world.root / "data/manifest.jsonl"), "--root", str(world.root),
         "--results", str(honest.parent), "--models-file", str(models), "--models", "talker",
         "--out", str(tmp_path / "audit"), "--jobs", "1", "--no-players"]
    )  # fmt: skip
    rows = read_csv(tmp_path / "audit" / "sensitivity.csv")
    assert {row["definition"] for row in rows} == {"stated", *ALTERNATIVES}
    h1 = [row for row in rows if row["metric"] == "h1_gap_takeover"]
    assert [row["turn_s"] for row in h1[:4]] == ["1.0", "0.5", "1.5", "2.0"]
    for name in ("metrics.csv", "paired.csv"):
        assert {row["definition"] for row in read_csv(tmp_path / "audit" / name)} <= {str(STATED)}
    card = (tmp_path / "audit" / "card_talker.md").read_text(encoding="utf-8")
    assert str(STATED) in card
