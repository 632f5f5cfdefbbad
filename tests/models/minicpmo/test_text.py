"""Text from ids: characters that lie across units, special tokens, control tags."""

import pytest

from hfd.models.minicpmo.text import TagFilter, TurnText
from tests.fakes.minicpmo import IDS, Tokenizer, spoken


def test_a_chinese_character_across_two_units_comes_whole_with_the_second():
    text = TurnText(Tokenizer())
    ids = spoken("红色")
    assert text.add(ids[:4]).spoken == "红"
    assert text.add(ids[4:5]).spoken == ""
    assert text.add(ids[5:]).spoken == "色"
    assert text.end().spoken == ""


def test_special_tokens_are_no_text_and_a_new_turn_begins_anew():
    text = TurnText(Tokenizer())
    assert text.add([IDS["<|tts_bos|>"], *spoken("yes"), IDS["<|turn_eos|>"]]).spoken == "yes"
    text.end()
    assert text.add(spoken("no")).spoken == "no"


def test_bytes_that_never_became_a_character_are_shown_at_the_turns_end():
    text = TurnText(Tokenizer())
    assert text.add(spoken("a红")[:2]).spoken == "a"
    assert text.end().spoken == "�"


@pytest.mark.parametrize("step", [1, 2, 5, 100])
def test_a_delegated_task_is_never_spoken_however_it_is_cut(step):
    whole = "Sure. <delegate>look up 3 < 4</delegate> One <b> moment."
    text = TurnText(Tokenizer(), ["delegate"])
    ids = spoken(whole)
    pieces = [text.add(ids[at : at + step]) for at in range(0, len(ids), step)] + [text.end()]
    assert "".join(piece.spoken for piece in pieces) == "Sure.  One <b> moment."
    assert [tag for piece in pieces for tag in piece.tagged] == [("delegate", "look up 3 < 4")]


def test_tags_that_are_tokens_of_their_own_are_seen_too():
    tokenizer = Tokenizer(["<delegate>", "</delegate>"])
    start, end = sorted(tokenizer.added_tokens_decoder)[-2:]
    text = TurnText(tokenizer, ["delegate"])
    piece = text.add([*spoken("Yes "), start, *spoken("task"), end, *spoken("now")])
    assert (piece.spoken, piece.tagged) == ("Yes now", (("delegate", "task"),))


def test_a_tag_left_open_is_told_and_not_spoken_and_a_false_start_is_text():
    tags = TagFilter(["delegate"])
    assert tags.feed("so <dele").spoken == "so "
    assert tags.feed("x").spoken == "<delex"
    assert tags.feed(" <delegate>buy").spoken == " "
    assert tags.end().tagged == (("delegate", "buy"),)
