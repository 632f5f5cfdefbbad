"""The wire file: what is sent for a unit, what a message means, and what is refused."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from hfd.duplex.frames import FrameRule
from hfd.duplex.units import Unit
from hfd.errors import HfdError
from hfd.models.aero import AeroModel
from hfd.models.aero.speaker import Speaker
from hfd.models.aero.wire import SentFrame, Wire
from hfd.models.sockets.exchange import Exchange
from hfd.models.sockets.failures import SampleFailure
from hfd.models.sockets.measures import largest_burst
from hfd.models.sockets.recording import Recording

SHIPPED = Path(__file__).parents[3] / "config" / "wires" / "aero.yaml"
UNIT = Unit(3, 3840, np.full(1280, -0.5, np.float32), (), 1280, False)


@pytest.fixture
def mended(tmp_path):
    """The shipped file with a change, as a user would mend it."""

    def mend(change):
        content = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))
        change(content)
        path = tmp_path / "mended.yaml"
        path.write_text(yaml.safe_dump(content), encoding="utf-8")
        return Wire(path)

    return mend


def test_a_unit_is_1280_samples_of_pcm16_and_its_picture_goes_first():
    picture, audio = map(
        json.loads, Wire(SHIPPED).unit_messages(UNIT, SentFrame(0.2, b"\xff\xd8"), {})
    )
    assert picture["type"] == "video.frame" and picture["timestamp"] == 0.2
    pcm = np.frombuffer(base64.b64decode(audio["audio"]), "<i2")
    assert len(pcm) == 1280 and set(pcm) == {-16384}


def test_a_unit_without_a_picture_sends_sound_alone():
    messages = Wire(SHIPPED).unit_messages(UNIT, None, {})
    assert [json.loads(message)["type"] for message in messages] == ["input.audio.append"]


def test_binary_float32_and_a_picture_inside_the_message_need_no_code(mended):
    def binary(content):
        content["send"]["unit"] = ["{float32}"]

    (raw,) = mended(binary).unit_messages(UNIT, None, {})
    assert np.array_equal(np.frombuffer(raw, "<f4"), UNIT.pcm)

    def joined(content):
        content["send"]["unit"] = [
            {"type": "chunk", "i": "{index}", "a": "{pcm16_base64}", "v": ["{picture_jpeg_base64}"]}
        ]

    wire = mended(joined)
    (with_picture,) = map(json.loads, wire.unit_messages(UNIT, SentFrame(0.2, b"x"), {}))
    (without,) = map(json.loads, wire.unit_messages(UNIT, None, {}))
    assert with_picture["v"] == ["eA=="] and with_picture["i"] == 3
    assert without["v"] == []


@pytest.mark.parametrize(
    ("message", "kind", "text"),
    [
        ({"type": "response.text.delta", "delta": "好"}, "text", "好"),
        ({"event": "text.delta", "text": "hi"}, "text", "hi"),
        ({"type": "response.output_text.delta", "content": "x", "slot": 4}, "text", "x"),
        ({"type": "response.text.delta", "delta": None}, "text", ""),
        ({"type": "response.done"}, "final", ""),
        ({"type": "session.created"}, "ignored", ""),
        ({"type": "error", "error": {"message": "full"}}, "error", "full"),
        ({"type": "error", "error": "flat"}, "error", "flat"),
        ({"type": "never.seen"}, "unknown", ""),
    ],
)
def test_several_spellings_mean_the_same(message, kind, text):
    event = Wire(SHIPPED).parse(json.dumps(message))
    assert (event.kind, event.text) == (kind, text)


@pytest.mark.parametrize(
    "raw",
    [
        "{",
        b"\xff\xfe",
        "[]",
        "[" * 100_000,
        '{"type": "response.text.delta", "delta": 5}',
        '{"type": "response.text.delta", "delta": "\\ud800"}',
        '{"type": "response.text.delta", "delta": "x", "token_ids": [1.5]}',
        '{"type": "response.text.delta", "delta": "x", "token_ids": [true]}',
        '{"type": "response.text.delta", "delta": "x", "slot": NaN}',
        '{"type": "response.text.delta", "slot": 1' + "0" * 5000 + "}",
    ],
)
def test_a_message_that_is_none_is_a_breach_of_protocol(raw):
    with pytest.raises(ValueError):
        Wire(SHIPPED).parse(raw)


def test_what_the_server_issues_is_sent_back_with_every_unit(mended):
    def with_session(content):
        content["receive"]["values"] = {"session": ["session.id", "session_id"]}
        content["send"]["unit"] = [
            {"type": "pic", "data": "{picture_jpeg_base64}", "session": "{session}"},
            {"type": "chunk", "a": "{pcm16_base64}", "session": "{session}"},
        ]
        content["send"]["done"] = [{"type": "input.done", "session": "{session}"}]

    wire = mended(with_session)
    assert wire.awaited == {"session"}
    event = wire.parse('{"type": "session.created", "session": {"id": "s-1"}}')
    assert event.values == {"session": "s-1"}
    (unit,) = map(json.loads, wire.unit_messages(UNIT, None, event.values))
    assert (unit["type"], unit["session"]) == ("chunk", "s-1")
    (done,) = map(json.loads, wire.done_messages(event.values))
    assert done == {"type": "input.done", "session": "s-1"}
    with pytest.raises(ValueError, match="issued a session"):
        wire.parse('{"type": "session.created", "session": {"id": 1.5}}')


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c["send"]["unit"].append({"type": "x", "data": "{pcm24}"}),
        lambda c: c["send"]["unit"].append({"type": "x", "data": "{pcm16}"}),  # bytes in JSON
        lambda c: c["receive"].pop("final"),
        lambda c: c.update(schema="hfd-wire/9"),
        lambda c: c.update(markers="("),
        lambda c: c["send"]["done"].append({"id": "{session}"}),  # a value that nobody issues
    ],
)
def test_a_wire_file_that_could_not_work_is_refused_before_a_run(mended, change):
    with pytest.raises(HfdError, match=r"mended\.yaml"):
        mended(change)


@pytest.mark.parametrize(
    "settings",
    [
        {"picture_fps": 6},
        {"picture_fps": "often"},
        {"urll": "ws://x"},
        {"url": 8090},
        {"final_event_s": "5"},
        {"wire": "config/wires/none.yaml"},
        {"servers": {"asr": {}}},
        {"tts_url": "ws://127.0.0.1:{port}/v1/tts/stream"},
    ],
)
def test_a_wrong_setting_is_refused_by_name(settings):
    with pytest.raises(HfdError):
        AeroModel(settings)


def test_the_picture_rate_is_on_record():
    assert AeroModel({"picture_fps": 2}).capabilities.frame_rule == FrameRule.per_second(
        2, jpeg_quality=95
    )


def test_text_that_can_no_longer_be_spoken_fails_the_sample():
    async def speak_late():
        speaker = Speaker(lambda event: None, Exchange(Recording(None)))
        with contextlib.suppress(SampleFailure):
            await speaker.finish(idle_s=0.01)  # nobody answers
        speaker.say("late", 0, 0.0)

    with pytest.raises(SampleFailure, match="not_online: text came after its end"):
        asyncio.run(speak_late())


def test_bursts_are_counted_within_their_window():
    assert largest_burst([0.0, 0.08, 0.16, 0.17, 0.18], 0.08) == 3
    assert largest_burst([], 0.08) == 0
