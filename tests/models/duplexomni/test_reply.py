"""Every form in which the thinker writes its dict."""

from __future__ import annotations

import pytest

from hfd.models.duplexomni.reply import parse_reply

SAID = {"tts": "好的", "asr": "你是谁"}


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ('{"tts_control": "", "system2_control": "", "asr": "你是谁", "tts": "好的"}', "json"),
        ("{'tts_control': '', 'system2_control': '', 'asr': '你是谁', 'tts': '好的'}", "literal"),
        ('```json\n{"asr": "你是谁", "tts": "好的"}\n```', "json"),
        ("```python\n{'asr': '你是谁', 'tts': '好的'}\n```", "literal"),
        ('好: {"asr": "你是谁", "tts": "好的"} 完', "json"),
        ("{'asr': '你是谁', 'tts': '好的'", "fields"),
        ("{'asr': '你是谁', 'tts': '好的', 'tts_control': }", "fields"),
    ],
)
def test_all_forms_give_the_same_words(text, form):
    reply = parse_reply(text)
    assert (reply.form, reply.tts, reply.asr) == (form, SAID["tts"], SAID["asr"])


def test_an_apostrophe_inside_single_quotes_ends_no_words():
    reply = parse_reply("{'asr': 'what's that', 'tts': 'I'm sure it's \"fine\"'}")
    assert (reply.asr, reply.tts) == ("what's that", "I'm sure it's \"fine\"")
    assert reply.form == "fields"


def test_a_quote_and_a_brace_in_the_words_survive():
    assert parse_reply('{"tts": "say \\"{x}\\" 。"}').tts == 'say "{x}" 。'


@pytest.mark.parametrize(
    "text", ["", "no dict", "[1, 2]", "{}", '{"other": 1}', "{" * 5000, "{'tts"]
)
def test_no_words_are_made_of_nothing(text):
    reply = parse_reply(text)
    assert (reply.form, reply.tts) == ("unreadable", "")


def test_control_marks_are_read_and_think_wins_over_wait():
    reply = parse_reply('{"tts_control": "[STOP]", "system2_control": "[WAIT][THINK]", "tts": ""}')
    assert (reply.stop, reply.think, reply.wait) == (True, True, False)


def test_values_of_another_type_are_no_words():
    assert parse_reply('{"tts": 5, "asr": null, "tts_control": ["[STOP]"]}').tts == ""
