"""Raw rows and the timeline they make."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from hfd.data.timeline import Timeline, hesitation_timeline, is_unfinished
from hfd.errors import HfdError

from .conftest import Raw


def timeline(raw: Raw, row: dict[str, Any], video_end: Any = 2, **options: Any) -> Timeline:
    (sample,) = raw.read(row)
    return hesitation_timeline(sample, [Fraction(2)] * 2, Fraction(video_end), **options)


def refusal(raw: Raw, row: dict[str, Any], **options: Any) -> str:
    with pytest.raises(HfdError) as caught:
        timeline(raw, row, **options)
    return str(caught.value)


def test_conversation_time_becomes_media_time_without_float_error(raw: Raw) -> None:
    first, second = timeline(raw, raw.row()).clips  # 5.3 - 5.1 is 0.20000000000000018 in floats
    assert (first.start, first.end, first.source_start) == (3200, 9600, 4000)
    assert (second.start, second.end, second.source_start) == (16000, 24000, 8000)


def test_a_question_may_begin_exactly_with_the_video(raw: Raw) -> None:
    assert timeline(raw, raw.row(first={"start": 5.1, "end": 5.5})).clips[0].start == 0


@pytest.mark.parametrize(
    ("video_end", "body"),
    [(2, 10), (Fraction(2001, 1000), 11), (Fraction(1, 25), 8), (Fraction("1.4"), 8)],
)
def test_the_body_lasts_until_video_and_speech_are_over(
    video_end: Any, body: int, raw: Raw
) -> None:
    made = timeline(raw, raw.row(), video_end)
    assert (made.body, made.frames, made.samples) == (body, body + 15, (body + 15) * 3200)
    assert made.seconds == (body + 15) / 5
    assert any("last video frame is held" in warning for warning in made.warnings) == (body == 8)


def test_roles_rule_over_the_order_of_the_list(raw: Raw) -> None:
    row = raw.row()
    row["duplex"]["inputs"].reverse()
    assert timeline(raw, row).clips[0].event.spoken_text == "What is the"


def test_without_roles_the_order_rules(raw: Raw) -> None:
    made = timeline(raw, raw.row(first={"role": None}, second={"role": None}))
    assert [clip.event.role for clip in made.clips] == ["first_question", "second_question"]


def test_other_field_names_are_mapped(raw: Raw) -> None:
    row = raw.row()
    row["clip"] = row.pop("video")
    row["clock"] = {"zero": row.pop("timing")["video_offset"]}
    for event in row["duplex"]["inputs"]:
        event["cut"] = {"from": event.pop("source_start"), "to": event.pop("source_end")}
    names = {"video": "clip", "video_offset": "clock.zero"}
    names |= {"source_start": "cut.from", "source_end": "cut.to"}
    (sample,) = raw.read(row, fields=names)
    assert (sample.video_offset, sample.events[0].source_start) == (5.1, 0.25)
    with pytest.raises(HfdError, match="vidoe"):
        raw.read(row, fields={"vidoe": "clip"})


def test_the_source_range_rules_and_a_mismatch_is_told(raw: Raw) -> None:
    made = timeline(raw, raw.row(first={"end": 5.679}))
    assert made.clips[0].end - made.clips[0].start == 6400
    assert "+0.021 s" in made.warnings[0]
    assert timeline(raw, raw.row(first={"end": 5.68})).warnings == ()


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"first": {"start": 5.0999}}, "duplex.inputs[0].start", "of the video"),
        ({"first": {"end": 5.3}}, "duplex.inputs[0].end", "empty or inverted"),
        ({"second": {"end": 6.0}}, "duplex.inputs[1].end", "empty or inverted"),
        ({"first": {"source_end": 0.25}}, "duplex.inputs[0].source_end", "empty or inverted"),
        ({"first": {"source_end": 0.25000001}}, "duplex.inputs[0].source_end", "no sample"),
        ({"second": {"source_end": 2.0011}}, "duplex.inputs[1].source_end", "beyond"),
        ({"second": {"source_start": -1.0}}, "duplex.inputs[1].source_start", "-1.0"),
        ({"first": {"source_end": 1.0501}}, "duplex.inputs[0]", "second question begins"),
        (
            {"first": {"spoken_text": "What is the colour of the car"}},
            "duplex.inputs[0].spoken_text",
            "no unfinished beginning",
        ),
        ({"first": {"spoken_text": None}}, "duplex.inputs[0].spoken_text", "missing"),
        ({"first": {"text": " "}}, "duplex.inputs[0].text", "empty"),
        ({"first": {"start": "5.3"}}, "duplex.inputs[0].start", "text"),
        ({"first": {"start": None}}, "duplex.inputs[0].start", "missing"),
        ({"first": {"audio": "data/raw/none.wav"}}, "duplex.inputs[0].audio", "no file"),
        ({"first": {"audio": "../first.wav"}}, "duplex.inputs[0].audio", "leaves its folder"),
        ({"first": {"role": "user"}}, "duplex.inputs[].role", "'user'"),
        ({"first": {"role": "second_question"}}, "duplex.inputs[].role", "second_question"),
        ({"timing": {}}, "timing.video_offset", "missing"),
        ({"timing": {"video_offset": True}}, "timing.video_offset", "boolean"),
        ({"video": "data/raw/none.mp4"}, "video", "no file"),
        ({"duplex": {"inputs": []}}, "duplex.inputs", "0 entries"),
        ({"duplex": {"inputs": [{}, {}, {}]}}, "duplex.inputs", "3 entries"),
        ({"duplex": {"inputs": [1, 2]}}, "duplex.inputs[0]", "not an object"),
        ({"duplex": {}}, "duplex.inputs", "missing"),
    ],
)
def test_what_does_not_fit_is_refused_not_repaired(
    changes: dict, field: str, words: str, raw: Raw
) -> None:
    text = refusal(raw, raw.row(**changes))
    assert f"manifest.jsonl:1: {field}: " in text and words in text


def test_a_range_that_was_rounded_to_the_millisecond_is_accepted(raw: Raw) -> None:
    changes = {"source_start": 1.501, "source_end": 2.001}
    assert timeline(raw, raw.row(second=changes)).clips[1].end == 24000


def test_a_full_first_question_can_be_made_a_warning(raw: Raw) -> None:
    row = raw.row(first={"spoken_text": "Something else"})
    made = timeline(raw, row, full_first_question="warn")
    assert "no unfinished beginning" in made.warnings[0]


@pytest.mark.parametrize(
    ("spoken", "meant", "expected"),
    [
        ("这辆车的", "这辆车的颜色是什么？", True),
        ("这辆车的……", "这辆车的颜色是什么？", True),
        ("What is  the —", "what is the colour?", True),
        ("这辆车的颜色是什么", "这辆车的颜色是什么？", False),
        ("What is the colour?!", "What is the colour?", False),
        ("What was", "What is the colour?", False),
        ("…", "What is the colour?", False),
    ],
)
def test_an_unfinished_beginning_is_known_by_its_letters(
    spoken: str, meant: str, expected: bool
) -> None:
    assert is_unfinished(spoken, meant) is expected


def test_the_recipe_changes_with_the_row_and_with_nothing_else(raw: Raw) -> None:
    before = raw.read(raw.row("a"), raw.row("b"))
    after = raw.read(raw.row("b"), raw.row("a", first={"start": 5.31}))
    assert before[1].recipe == after[0].recipe
    assert before[0].recipe != after[1].recipe


def test_two_raw_rows_with_one_id_are_refused(raw: Raw) -> None:
    with pytest.raises(HfdError, match="line 1"):
        raw.read(raw.row("A"), raw.row("a"))
