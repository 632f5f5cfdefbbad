"""The TTS server over a real socket, with the humming voice: order, waiting, caps, refusals."""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from hfd.models.servers import ChildServer, ServerSpec, start_all
from hfd.models.tts.protocol import FRAME_SAMPLES
from tests.models.aero.conftest import SCRIPTS, server_settings
from tests.models.aero.tone_server import FRAME_S


class Client:
    """A session: sends what it is told, gives back headers with their sound and time."""

    def __init__(self, port, **config):
        self.socket = connect(f"ws://127.0.0.1:{port}/v1/tts/stream", proxy=None, legacy=True)
        self.send("session.config", **config)
        self.ready = self.next()

    def send(self, kind, **fields):
        self.socket.send(json.dumps({"type": kind, **fields}))

    def next(self, timeout=20):
        message = json.loads(self.socket.recv(timeout))
        if message["type"] == "audio.chunk":
            message["pcm"] = self.socket.recv(timeout)
        return message | {"at": time.monotonic()}

    def until(self, kind):
        """All messages up to the first of this kind."""
        messages = [self.next()]
        while messages[-1]["type"] != kind:
            messages.append(self.next())
        return messages


@pytest.fixture
def client(servers):
    opened = []

    def open_one(**config):
        opened.append(Client(servers["tone"].port, **config))
        return opened[-1]

    yield open_one
    for one in opened:
        one.socket.close()


def chunks(messages):
    return [message for message in messages if message["type"] == "audio.chunk"]


@pytest.mark.realtime
def test_the_first_sound_comes_one_frame_after_the_first_text(client):
    delays = []
    for _ in range(10):
        one = client()
        sent = time.monotonic()
        one.send("input.text", seq=0, text="a")
        assert one.next()["type"] == "audio.start"
        first = one.next()
        assert first["type"] == "audio.chunk"
        delays.append(first["at"] - sent - FRAME_S)
        one.socket.close()
    assert min(delays) <= 0.020  # the others may have waited for the machine


def test_part_of_the_text_gives_part_of_the_speech(client):
    one = client()
    one.send("input.text", seq=0, text="a")
    first = chunks(one.next() for _ in range(2))[0]
    assert first["text_seq_consumed"] == 0 and len(first["pcm"]) == FRAME_SAMPLES * 2
    one.send("input.text", seq=1, text="b")
    one.send("input.done")
    rest = one.until("session.done")
    consumed = [chunk["text_seq_consumed"] for chunk in chunks(rest)]
    assert consumed == sorted(consumed) and consumed[-1] == 1


@pytest.mark.realtime
@pytest.mark.parametrize("emit", [1, 4, 8])
def test_no_frame_is_lost_whatever_the_chunk_size(client, emit):
    one = client(emit_every_frames=emit)
    for seq in range(5):
        one.send("input.text", seq=seq, text="abcde"[seq])
    one.send("input.done")
    messages = one.until("session.done")
    done = messages[-2]
    sizes = [chunk["frames"] for chunk in chunks(messages)]
    assert sum(sizes) == done["frames"] == 10 and set(sizes[:-1]) <= {emit}
    assert sum(len(chunk["pcm"]) for chunk in chunks(messages)) == 10 * FRAME_SAMPLES * 2
    indices = [chunk["frame_index"] for chunk in chunks(messages)]
    assert indices == [sum(sizes[:n]) for n in range(len(sizes))]


@pytest.mark.realtime
def test_late_text_is_waited_for_then_padded_and_still_spoken_in_the_same_utterance(client):
    one = client()
    one.send("input.text", seq=0, text="a")
    time.sleep(0.9)  # longer than the wait of 0.5 s, shorter than the frame cap of 18 frames
    one.send("input.text", seq=1, text="b")
    one.send("input.flush")
    one.send("input.done")
    messages = one.until("session.done")
    done = messages[-2]
    assert done["eos"] == "codec" and done["segments"] == 1 and done["tokens"] == 2
    assert done["starved_steps"] >= 2 and done["pad_steps"] >= 2
    assert any(chunk["starved"] for chunk in chunks(messages))
    assert [m["type"] for m in messages].count("audio.start") == 1


def test_speech_that_never_ends_meets_the_cap(client):
    one = client()
    one.send("input.text", seq=0, text="∞")
    one.send("input.text", seq=1, text="b")
    one.send("input.done")
    done = one.until("session.done")[-2]
    assert done["eos"] == "frame_cap" and done["frames"] == 12 + 6 * 2


@pytest.mark.realtime
def test_utterances_are_spoken_one_by_one_in_the_order_of_their_first_text(client):
    many = [client() for _ in range(3)]
    order = (1, 0, 2)
    with ThreadPoolExecutor(3) as pool:
        heard = {n: pool.submit(many[n].until, "session.done") for n in order}
        for number in order:
            for seq in range(4):
                many[number].send("input.text", seq=seq, text="x")
            many[number].send("input.done")
            time.sleep(0.02)  # the first takes 80 ms: the others have to queue
    times = [[chunk["at"] for chunk in chunks(heard[n].result())] for n in order]
    assert [len(each) for each in times] == [8, 8, 8]
    for earlier, later in pairwise(times):
        assert earlier[-1] <= later[0] + 0.005


@pytest.mark.realtime
def test_cancel_and_leaving_free_the_talker_at_once(client):
    first, gone, third = client(), client(), client()
    first.send("input.text", seq=0, text="∞")
    first.next()
    gone.send("input.text", seq=0, text="∞")
    gone.socket.close()
    first.send("input.cancel")
    first.send("input.done")
    assert first.until("session.done")[-2]["eos"] == "cancelled"
    third.send("input.text", seq=0, text="x")
    third.send("input.done")
    began = time.monotonic()
    assert third.until("session.done")[-2]["frames"] == 2
    assert time.monotonic() - began < 1


def test_each_utterance_begins_anew(client):
    one = client()
    for seq in range(2):
        one.send("input.text", seq=seq, text="x")
        one.send("input.flush")
    one.send("input.done")
    messages = one.until("session.done")
    done = [message for message in messages if message["type"] == "audio.done"]
    assert [(d["utterance"], d["frames"]) for d in done] == [(0, 2), (1, 2)]
    assert chunks(messages)[2]["pcm"] == chunks(messages)[0]["pcm"]


def test_ready_tells_what_speaks_and_health_is_plain_http(client, servers):
    ready = client(speaker="Serena", language="english", seed=4).ready
    assert ready["speaker"] == "serena" and ready["seed"] == 4
    assert (ready["sample_rate"], ready["frame_samples"]) == (24000, 1920)
    url = f"http://127.0.0.1:{servers['tone'].port}/health"
    health = json.loads(urllib.request.urlopen(url, timeout=5).read())
    assert health["status"] == "ok" and health["acceleration"] == "plain"
    assert health["sessions"] >= 1


@pytest.mark.parametrize(
    ("config", "message", "code"),
    [
        ({"speaker": "nobody"}, None, "unknown_speaker"),
        ({"language": "klingon"}, None, "unknown_language"),
        ({"emit_every_frames": 9}, None, "bad_emit_every_frames"),
        ({"seed": "x"}, None, "bad_seed"),
        ({}, {"type": "input.text", "seq": 0}, "bad_text"),
        ({}, {"type": "input.text", "text": "x"}, "bad_seq"),
        ({}, {"type": "input.text", "seq": 0, "token_ids": [1 << 30]}, "bad_text"),
        ({}, {"type": "input.song"}, "unknown_type"),
        ({}, ["no", "object"], "bad_message"),
    ],
)
def test_what_the_protocol_does_not_know_is_refused_by_name(client, config, message, code):
    one = client(**config)
    answer = one.ready
    if message is not None:
        one.socket.send(json.dumps(message))
        answer = one.next()
    assert answer["type"] == "error" and answer["code"] == code
    with pytest.raises(ConnectionClosed):
        one.next()


TEXT = '{"type": "input.text", "seq": %s, "text": %s}'


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("[" * 100_000 + "]" * 100_000, "bad_message"),
        ('{"type":' * 5_000 + "0" + "}" * 5_000, "bad_message"),
        ('{"type": "input.text", "seq": ' + "9" * 5_000 + ', "text": "x"}', "bad_message"),
        (TEXT % ("9" * 4_000, '"x"'), "bad_seq"),
        (TEXT % ("1e400", '"x"'), "bad_seq"),
        (TEXT % ("0.0", '"x"'), "bad_seq"),
        (TEXT % ("true", '"x"'), "bad_seq"),
        (TEXT % ("0", '"\\ud800"'), "bad_text"),
        (TEXT % ("0", "[1]"), "bad_text"),
        ('{"type": "input.text", "seq": 0, "token_ids": [65.0]}', "bad_text"),
        ('{"type": "input.text", "seq": 0, "token_ids": [true]}', "bad_text"),
        ('{"type": "input.text", "seq": 0, "token_ids": [-1]}', "bad_text"),
        ('{"type": "input.text", "seq": 0, "token_ids": {"0": 1}}', "bad_text"),
        ('{"type": "\\udfff"}', "unknown_type"),
        ('{"type": ["input.text"]}', "bad_message"),
        ("\x00\x01", "bad_message"),
        (b"\xff" * 1000, "bad_message"),
        ("", "bad_message"),
        (json.dumps({"type": "input.text", "seq": 0, "token_ids": [65] * 20_001}), "too_much_text"),
    ],
    ids=lambda value: str(value)[:12] if len(str(value)) > 14 else None,
)
def test_no_message_kills_the_server_and_each_is_refused_by_name(client, raw, code):
    other, one = client(), client()
    one.socket.send(raw)
    answer = one.next()
    assert (answer["type"], answer["code"]) == ("error", code)
    with pytest.raises(ConnectionClosed):
        one.next()
    other.send("input.text", seq=0, text="x")
    other.send("input.done")
    assert other.until("session.done")[-2]["frames"] == 2


@pytest.mark.parametrize(
    ("config", "code"),
    [
        ({"seed": 1 << 64}, "bad_seed"),
        ({"seed": -1}, "bad_seed"),
        ({"seed": 1.0}, "bad_seed"),
        ({"speaker": "\ud800"}, "unknown_speaker"),
        ({"speaker": ["ryan"]}, "unknown_speaker"),
        ({"emit_every_frames": []}, "bad_emit_every_frames"),
        ({"emit_every_frames": [1, 2, 9]}, "bad_emit_every_frames"),
        ({"emit_every_frames": True}, "bad_emit_every_frames"),
    ],
)
def test_a_choice_that_cannot_be_is_refused_by_name(client, config, code):
    assert client(**config).ready["code"] == code
    assert client(seed=2**63 - 1).ready["type"] == "session.ready"


@pytest.mark.realtime
def test_a_client_that_leaves_after_its_text_frees_the_talker_at_once(client, servers):
    gone, other = client(), client()
    gone.send("input.text", seq=0, text="∞")
    for seq in range(1, 200):  # a thousand frames, 12 s
        gone.send("input.text", seq=seq, text="x")
    gone.send("input.done")
    gone.until("audio.chunk")
    gone.socket.socket.close()  # without a farewell
    began = time.monotonic()
    other.send("input.text", seq=0, text="x")
    other.send("input.done")
    assert other.until("session.done")[-2]["frames"] == 2
    assert time.monotonic() - began < 2
    assert "Traceback" not in servers["tone"].log.read_text()


def _random_message(chance):
    """Something like what a client says, with a value that does not belong there."""
    values = [None, True, 1.5, -1, 2**64, 10**30, "", "x", "\ud800", "\0", [], [65], {}, [[0]]]
    message = {"type": chance.choice(["input.text", "input.flush", "input.done", "input.cancel"])}
    if message["type"] == "input.text":
        message |= {"seq": chance.randrange(4), "text": chance.choice("ab∞")}
    if chance.random() < 0.5:
        keys = ["type", "seq", "text", "token_ids"]
        message[chance.choice(keys)] = chance.choice(values)
    raw = json.dumps(message)
    if chance.random() < 0.2:
        place = chance.randrange(len(raw))
        raw = raw[:place] + chance.choice(["", "}", '"', "\\u", "9" * 5000]) + raw[place:]
    return raw.encode() if chance.random() < 0.1 else raw


def test_clients_that_say_anything_and_leave_at_any_time_cost_nobody_else(client, servers):
    chance = random.Random(7)
    for _ in range(60):
        one = client()
        with contextlib.suppress(ConnectionClosed):
            for _ in range(chance.randrange(8)):
                one.socket.send(_random_message(chance))
            if chance.random() < 0.5:
                one.socket.socket.close()
            else:
                with contextlib.suppress(TimeoutError):
                    while one.next(0.05)["type"] != "error":
                        pass
                one.socket.close()
    last = client()
    last.send("input.text", seq=0, text="x")
    last.send("input.done")
    assert last.until("session.done")[-2]["frames"] == 2
    assert "Traceback" not in servers["tone"].log.read_text()


def test_after_the_end_of_its_text_a_client_may_cancel_and_say_nothing_else(client):
    one = client()
    one.send("input.text", seq=0, text="∞")
    one.send("input.text", seq=1, text="x")
    one.send("input.done")
    one.send("input.cancel")
    assert one.until("session.done")[-2]["eos"] == "cancelled"
    other = client()
    other.send("input.text", seq=0, text="∞")
    other.send("input.done")
    other.send("input.text", seq=1, text="x")
    assert other.until("error")[-1]["code"] == "after_done"


def test_chunks_grow_if_the_client_asks_for_it(client):
    one = client(emit_every_frames=[1, 2, 4])
    assert one.ready["emit_every_frames"] == [1, 2, 4]
    one.send("input.text", seq=0, token_ids=[97] * 8)
    one.send("input.done")
    assert [chunk["frames"] for chunk in chunks(one.until("session.done"))] == [1, 2, 4, 4, 4, 1]


@pytest.mark.realtime
def test_two_sessions_speak_at_the_same_time_where_there_are_two_slots(tmp_path):
    settings = server_settings("tone_server.py", "2")
    server = ChildServer(ServerSpec.from_settings("tone", settings), tmp_path)
    start_all([server])
    try:
        pair = [Client(server.port) for _ in range(2)]
        with ThreadPoolExecutor(2) as pool:
            heard = [pool.submit(one.until, "session.done") for one in pair]
            for one in pair:
                one.send("input.text", seq=0, token_ids=[97] * 40)
                one.send("input.done")
        times = [[chunk["at"] for chunk in chunks(one.result())] for one in heard]
        assert [len(each) for each in times] == [80, 80]
        assert times[0][0] < times[1][-1] and times[1][0] < times[0][-1]
    finally:
        server.stop()


@pytest.mark.realtime
def test_one_session_speaks_one_utterance_after_the_other_though_there_are_two_slots(tmp_path):
    settings = server_settings("tone_server.py", "2")
    server = ChildServer(ServerSpec.from_settings("tone", settings), tmp_path)
    start_all([server])
    try:
        one = Client(server.port)
        for seq in range(3):
            one.send("input.text", seq=seq, token_ids=[97] * 10)
            one.send("input.flush")
        one.send("input.done")
        heard = [message["utterance"] for message in chunks(one.until("session.done"))]
        assert heard == [0] * 20 + [1] * 20 + [2] * 20
    finally:
        server.stop()


def test_a_broken_device_ends_the_server_so_that_the_job_starts_it_again(tmp_path):
    server = ChildServer(
        ServerSpec.from_settings("tone", server_settings("tone_server.py")), tmp_path
    )
    start_all([server])
    try:
        one = Client(server.port)
        one.send("input.text", seq=0, text="☠")
        assert one.until("error")[-1]["code"] == "voice_failed"
        server._guardian.wait(20)
        assert server.ensure() and server.restarts == 1
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--host", "0.0.0.0"], "--host: 0.0.0.0 can be reached from other machines"),
        (["--emit-every-frames", "0"], "--emit-every-frames: must be 1 to 8"),
    ],
)
def test_the_command_refuses_what_would_be_wrong_later(options, words):
    command = [sys.executable, str(SCRIPTS / "tts_server.py"), "--model", "nowhere", *options]
    done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    assert done.returncode == 1
    assert words in done.stderr and "Traceback" not in done.stderr
