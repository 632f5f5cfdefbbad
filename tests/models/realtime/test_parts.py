"""The listener, the outgoing sound, the budget and the settings, each alone."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from hfd.duplex.model import ModelBroken
from hfd.duplex.units import Unit
from hfd.errors import HfdError
from hfd.models.realtime import RealtimeModel
from hfd.models.realtime.budget import Budget
from hfd.models.realtime.dialect import Traits
from hfd.models.realtime.dialects import make_dialect
from hfd.models.realtime.dialects.moshi import Moshi
from hfd.models.realtime.echo import differences
from hfd.models.realtime.listener import Heard, Listener
from hfd.models.realtime.settings import Settings, read_settings
from hfd.models.realtime.sound import IncomingPcm, Outgoing

RATE = 24_000
LOUD = np.full(2400, 5000, np.int16)
SILENT = np.zeros(2400, np.int16)


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def units(samples, size, seed=3):
    pcm = np.random.default_rng(seed).uniform(-0.5, 0.5, samples).astype(np.float32)
    count = -(-samples // size)
    for index in range(count):
        piece = pcm[index * size : (index + 1) * size]
        valid = len(piece)
        piece = np.pad(piece, (0, size - valid))
        yield Unit(index, index * size, piece, (), valid, index == count - 1)


# -- listener ----------------------------------------------------------------------------------


def test_what_was_heard_is_counted_in_whole_milliseconds_and_never_above_the_truth():
    clock = Clock()
    listener = Listener(RATE, clock, continuous=False)
    for _ in range(30):
        listener.add(LOUD, "r", "i")
    clock.now = 1.2345678
    assert listener.cut() == [Heard("i", "r", 1234, 3000)]
    assert listener.left_s == 0
    assert listener.cut() == []


def test_only_items_that_lost_sound_are_reported():
    clock = Clock()
    listener = Listener(RATE, clock, continuous=False)
    listener.add(LOUD, "r1", "i1")
    listener.add(LOUD, "r2", "i2")
    clock.now = 0.1501
    assert listener.cut() == [Heard("i2", "r2", 50, 100)]


def test_an_item_that_was_played_to_its_end_is_told_once():
    clock = Clock()
    listener = Listener(RATE, clock, continuous=False)
    listener.add(LOUD, "r", "i")
    assert listener.take_played({"i"}) == []
    clock.now = 0.1
    assert listener.take_played({"i"}) == [("i", 100)]
    assert listener.take_played({"i"}) == []


def test_a_continuous_stream_catches_up_in_its_silence_and_loses_no_sound():
    clock = Clock()
    listener = Listener(RATE, clock, continuous=True)
    played = []
    for n in range(20):
        clock.now = 0.1 * n if n < 5 or n > 7 else 0.8  # pieces 5 to 7 come with piece 8
        played.append(listener.add(SILENT if n > 10 else LOUD))
    assert sum(np.count_nonzero(p) for p in played) == 11 * 2400
    assert listener.absorbed_s == pytest.approx(0.3, abs=0.001)
    assert listener.stalled_s == pytest.approx(0.3, abs=0.001)
    assert listener.left_s == pytest.approx(0.1, abs=0.001)


def test_a_burst_is_never_shortened():
    listener = Listener(RATE, Clock(), continuous=False)
    assert sum(len(listener.add(SILENT)) for _ in range(10)) == 24_000


# -- sound -------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1280, 1600, 16_000])
def test_a_resampled_file_has_its_exact_length_whatever_its_units(size):
    traits = Traits(unit_samples=size, input_rate=24_000)
    outgoing = Outgoing(traits)
    sent = b"".join(b"".join(outgoing(unit)) for unit in units(5 * size - 300, size))
    assert len(sent) == 5 * size * 3 // 2 * 2


def test_resampling_as_a_stream_equals_resampling_the_whole():
    soxr = pytest.importorskip("soxr")
    outgoing = Outgoing(Traits(unit_samples=1600, input_rate=24_000))
    pieces = list(units(16_000, 1600))
    sent = np.frombuffer(b"".join(b"".join(outgoing(u)) for u in pieces), "<i2").astype(int)
    whole = soxr.resample(np.concatenate([u.pcm for u in pieces]), 16_000, 24_000, "HQ")
    assert np.abs(sent - np.rint(whole * 32768)).max() <= 1


def test_exact_units_stay_exact_after_resampling():
    traits = Traits(unit_samples=1280, input_rate=24_000, exact_units=True, codec="f32")
    outgoing = Outgoing(traits)
    pieces = [piece for unit in units(1280 * 9, 1280) for piece in outgoing(unit)]
    assert [len(piece) for piece in pieces] == [1920 * 4] * 9


def test_sixteen_kilohertz_leave_as_they_are():
    outgoing = Outgoing(Traits(unit_samples=1600))
    (unit,) = units(1600, 1600)
    (piece,) = outgoing(unit)
    np.testing.assert_array_equal(np.frombuffer(piece, "<i2"), np.rint(unit.pcm * 32768))


def test_odd_bytes_wait_for_their_item():
    incoming = IncomingPcm()
    data = np.arange(10, dtype="<i2").tobytes()
    first, other, rest = incoming(data[:7], "a"), incoming(data[:4], "b"), incoming(data[7:], "a")
    np.testing.assert_array_equal(np.concatenate([first, rest]), np.arange(10))
    np.testing.assert_array_equal(other, [0, 1])


def test_moshis_byte_pieces_are_joined_to_characters():
    dialect = Moshi(Settings("moshi", "ws://x"))
    pieces = ["hi", "<0xE4>", "<0xBD>", "<0xA0>", "<0xE5>", "ok"]
    texts = [f.text for p in pieces for f in dialect.read(b"\x02" + p.encode())]
    assert texts == ["hi", "你", "\ufffdok"]


# -- session -----------------------------------------------------------------------------------


def test_keys_that_are_echoed_otherwise_are_named_and_missing_ones_are_not():
    session = {"a": {"b": 1.0000001, "more": 3}, "c": None}
    assert differences(session, {"a.b": 1.0, "a": {"more": 3}, "x.y": 5, "c": None}) == []
    assert differences(session, {"c": "x", "a": {"d": 1}}) == [
        "c = None, not 'x'",
        "a = {'b': 1.0000001, 'more': 3}, not {'d': 1}",
    ]


# -- budget ------------------------------------------------------------------------------------


def test_a_budget_ends_a_run_and_outlives_its_worker(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "money.yaml"
    path.write_text("max_cost_usd: 1.0\nusd_per_minute: 0.05\nusd_per: {output_tokens: 0.001}\n")
    Budget(path).spend(4.0, {"output_tokens": 500})
    Budget(path).check()
    Budget(path).spend(2.0, {"output_tokens": 200.5})
    with pytest.raises(HfdError, match=r"max_cost_usd: is used up: 1\.00 of 1"):
        Budget(path).check()
    path.write_text("max_cost_usd: 2.0\nusd_per_minute: 0.05\nusd_per: {output_tokens: 0.001}\n")
    Budget(path).check()


def test_a_damaged_ledger_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "money.yaml"
    path.write_text("max_minutes: 1")
    Budget(path).spend(0.5, {})
    with Path("logs/budgets/money.jsonl").open("a") as ledger:
        ledger.write('{"minutes": 0.')
    with pytest.raises(HfdError, match=r"money\.jsonl:2: is no line of a ledger"):
        Budget(path).check()


@pytest.mark.parametrize("text", ["max_cost_usd: 1", "max_hours: 1", "- 1", "{"])
def test_a_budget_that_cannot_be_kept_is_refused(tmp_path, text):
    path = tmp_path / "money.yaml"
    path.write_text(text)
    with pytest.raises(HfdError, match=r"money\.yaml|budget"):
        Budget(path)


def test_a_used_up_budget_opens_no_session(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "money.yaml"
    path.write_text("max_minutes: 1")
    Budget(path).spend(1.5, {})
    settings = {"dialect": "moshi", "url": "ws://127.0.0.1:9/api/chat", "budget": str(path)}
    with pytest.raises(ModelBroken, match="max_minutes: is used up"):
        RealtimeModel(settings).open(None, lambda event: None)
    assert json.loads((tmp_path / "logs/budgets/money.jsonl").read_text())["minutes"] == 1.5


# -- settings ----------------------------------------------------------------------------------

WRONG = [
    ({"dialect": "klingon"}, "settings.dialect: is 'klingon'"),
    ({"url": "https://x"}, "settings.url"),
    ({"url": "ws://127.0.0.1:{port}/x"}, "settings.url: has no port"),
    ({"api_key": "sk-1"}, "settings.api_key: is no setting"),
    ({"url": "wss://x/v1?model=m&key=sk-1"}, "settings.url: holds a key"),
    ({"url": "wss://me:sk-1@x/v1"}, "settings.url: holds a key"),
    ({"frame_fps": 9}, "settings.frame_fps"),
    ({"dialect": "openai_live", "frame_fps": 1}, "settings.frame_fps: .*takes no video"),
    ({"turn_detection": {"type": "server_vad", "create_response": False}}, "create_response"),
    ({"dialect": "vllm_omni"}, "settings.url: .*autostart=0"),
    ({"servers": {"other": {}}}, "settings.servers.other: is no server"),
]


@pytest.mark.parametrize(("change", "problem"), WRONG)
def test_wrong_settings_are_named(change, problem):
    with pytest.raises(HfdError, match=problem):
        RealtimeModel({"dialect": "openai", "url": "wss://x/v1/realtime", **change})


def test_what_a_model_promises_follows_from_its_settings():
    def caps(**settings):
        return RealtimeModel({"url": "wss://x/v1/realtime?autostart=0", **settings}).capabilities

    assert caps(dialect="gemini").max_media_s == 900
    assert caps(dialect="gemini", frame_fps=1).max_media_s == 120
    assert caps(dialect="openai").secrets == ("OPENAI_API_KEY",)
    assert caps(dialect="openai", api_key_env="MY_KEY").secrets == ("MY_KEY",)
    assert caps(dialect="openai").turn_taking == "vad"
    assert caps(dialect="vllm_omni").clock == "arrival"
    assert caps(dialect="vllm_omni", input_clock="require").clock == "virtual"
    assert caps(dialect="vllm_omni", modality="text").voice_origin == "none"
    assert caps(dialect="moshi").unit_samples == 1280


def test_settings_change_the_traits_of_a_server():
    settings = {"dialect": "vllm_omni", "url": "ws://x/?autostart=0", "unit_ms": 80}
    settings |= {"input_rate": 24_000, "input_format": "f32", "exact_units": True}
    traits = make_dialect(read_settings(settings)).traits
    assert (traits.unit_samples, traits.input_rate, traits.codec) == (1280, 24_000, "f32")
